# maspo_rl on CPUs. Build from the top of the clone: docker build -f docker/cpu.Dockerfile -t maspo-rl:cpu .
FROM python:3.11-slim-bookworm

# DeepSpeed and the engine compile small kernels when they start; numactl's library is the engine's.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential libnuma1 make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /maspo_rl
COPY . .
RUN scripts/setup.sh cpu && rm -rf /root/.cache/pip

ENV PATH=/maspo_rl/.venv/bin:$PATH
ENTRYPOINT ["maspo-rl"]
CMD ["train", "experiment=quickstart"]
