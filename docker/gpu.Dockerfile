# maspo_rl on NVIDIA GPUs. Build from the top of the clone: docker build -f docker/gpu.Dockerfile -t maspo-rl:gpu .
# Run with: docker run --gpus all --ipc host maspo-rl:gpu train experiment=qwen2.5_math_7b
# The compiler of CUDA is needed at run time: DeepSpeed builds its optimiser kernels when it starts.
FROM nvidia/cuda:13.0.2-devel-ubuntu24.04

RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential make python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /maspo_rl
COPY . .
# No GPU is seen while an image is built, so the kind is named.
RUN scripts/setup.sh gpu && rm -rf /root/.cache/pip

ENV PATH=/maspo_rl/.venv/bin:$PATH
ENTRYPOINT ["maspo-rl"]
CMD ["doctor"]
