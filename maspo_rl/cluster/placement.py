"""Which node and which devices an actor gets, and the environment its process starts in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from maspo_rl.config.schema import ClusterConfig

KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
"""glibc gives large tensors back to the kernel and has all their pages zeroed anew for the next ones, until it has
learnt better; these are the most that it learns."""


@dataclass(frozen=True)
class EnginePlace:
    """`options` go to Ray; `devices` is what the engine sets as CUDA_VISIBLE_DEVICES itself, None to leave it alone."""

    options: dict[str, Any]
    devices: str | None = None


def actor_environment(config: ClusterConfig, threads: int | None) -> dict[str, str]:
    """Environment of an actor's process.

    On a CPU machine the phases alternate on the same cores: threads spin between two operators, about a tenth of a
    millisecond, and sleep between two phases. The thread count must be said, as Ray would set it to one.
    """
    environment = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    if config.gpus_per_node == 0:
        environment |= {
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": str(threads or os.cpu_count() or 1),
            "GOMP_SPINCOUNT": "100000",
            "KMP_BLOCKTIME": "1",
        } | KEEP_MEMORY
    return environment


def engine_places(
    config: ClusterConfig, engines: int, tensor_parallel: int, learners: list[tuple[str, str]]
) -> list[EnginePlace]:
    """One place per engine. `learners` lists (node id, device id) of every learner rank.

    Apart from the learners, Ray finds the devices. Sharing devices with them (`cluster.colocate`), engine i takes
    those of ranks i*tensor_parallel and following, so that weights pass by CUDA IPC on the same device.

    Raises:
        ValueError: sharing is asked for and the ranks of one engine lie on different nodes.
    """
    if config.gpus_per_node == 0:
        return [EnginePlace({"num_cpus": 0})] * engines
    if not config.colocate:
        return [EnginePlace({"num_cpus": 1, "num_gpus": tensor_parallel})] * engines
    places = []
    for index in range(engines):
        mates = learners[index * tensor_parallel : (index + 1) * tensor_parallel]
        nodes = {node for node, _ in mates}
        if len(nodes) != 1:
            raise ValueError(
                f"engine {index} would lie on {len(nodes)} nodes: learner ranks that share an engine must be on one "
                f"node; choose rollout.tensor_parallel so that it divides cluster.gpus_per_node"
            )
        strategy = NodeAffinitySchedulingStrategy(nodes.pop(), soft=False)
        devices = ",".join(device for _, device in mates)
        places.append(EnginePlace({"num_cpus": 1, "num_gpus": 0, "scheduling_strategy": strategy}, devices))
    return places
