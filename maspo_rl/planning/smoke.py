"""Smoke tests of what a run is made of, each in a process of its own: `python -m maspo_rl.planning.smoke NAME LOG`.

The last line printed says what worked, or what did not.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from maspo_rl.config.derived import compute_dtype
from maspo_rl.config.schema import ClusterConfig, LearnerConfig, ModelConfig, RolloutConfig

_TIMEOUT_S = 60.0


def vllm(log: Path) -> None:
    """The engine of a run, with the embedded policy, answers one prompt with a few tokens."""
    import torch  # noqa: PLC0415

    from maspo_rl.data import embedded_policy_path  # noqa: PLC0415
    from maspo_rl.rollout import SampleRequest, SamplingSettings  # noqa: PLC0415
    from maspo_rl.rollout.engine import Engine, EngineSettings  # noqa: PLC0415

    gpus = torch.cuda.device_count()
    rollout = RolloutConfig(kv_cache_gib=0.0625, max_sequences=4, gpu_memory_fraction=0.2)
    dtype, model = compute_dtype(ModelConfig(), ClusterConfig(gpus_per_node=gpus)), str(embedded_policy_path())
    backend = "ipc" if gpus else "shared_memory"
    engine = Engine(EngineSettings(model, None, dtype, 64, backend, rollout, 0, gpus > 0), log, None)
    engine.confirm(0, None)
    (answer,) = engine.generate([SampleRequest("doctor", (3, 30, 4), 0, 0)], SamplingSettings(1, 1, 0, 8, (), 0), 0)
    print(f"{len(answer.token_ids)} tokens of the embedded policy in {dtype}")


def deepspeed(_: Path) -> None:
    """Two processes, or one on each GPU, make one step of a tiny module under the configuration of a run."""
    import torch  # noqa: PLC0415
    from torch.multiprocessing.spawn import spawn  # noqa: PLC0415

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = torch.cuda.device_count() or 2
    spawn(_rank, (ranks, port), nprocs=ranks)  # type: ignore[no-untyped-call]
    print(f"one step of a tiny module over {'nccl' if torch.cuda.is_available() else 'gloo'}, {ranks} ranks")


def _rank(rank: int, ranks: int, port: int) -> None:
    # As in a run, a process sees one GPU alone.
    devices = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(ranks)))
    os.environ["CUDA_VISIBLE_DEVICES"] = devices.split(",")[rank]
    import torch  # noqa: PLC0415

    from maspo_rl.learner.deepspeed_engine import deepspeed_config, join_process_group  # noqa: PLC0415

    on_gpu = torch.cuda.is_available()
    join_process_group(rank, ranks, "127.0.0.1", port, on_gpu=on_gpu, timeout_s=_TIMEOUT_S)
    import deepspeed as library  # noqa: PLC0415

    module = torch.nn.Linear(4, 1)
    adamw = torch.optim.AdamW(module.parameters(), lr=0.1)
    config = deepspeed_config(LearnerConfig(), torch.float32)
    engine, *_ = library.initialize(model=module, optimizer=adamw, config=config, dist_init_required=False)
    inputs = torch.ones(2, 4, device=engine.device)
    before = engine(inputs).sum()
    engine.backward(before)
    engine.step()
    if not engine(inputs).sum() < before:
        raise RuntimeError("a step of gradient descent did not go down")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    {"vllm": vllm, "deepspeed": deepspeed}[sys.argv[1]](Path(sys.argv[2]))
