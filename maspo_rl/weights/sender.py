"""The learner's end: streams the gathered weights to the engines and says what was sent."""

from __future__ import annotations

import socket
from typing import Any

import ray
import torch

from maspo_rl.weights.engine_client import EngineClient
from maspo_rl.weights.shared_memory import SharedMemorySender
from maspo_rl.weights.source import DigestedSource, GatheredSource


class WeightSender:
    """Built on every learner rank; rank 0 sends, the others join the gathering."""

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        rank: int,
        backend: str,
        engines: list[Any],
        tensor_parallel: int,
        timeout_s: float,
        movable: bool,
    ) -> None:
        """`movable`: nobody but the module holds its parameters' memory."""
        # Sooner than whoever waits for this rank: the engine that does not answer is named, not the rank.
        client = EngineClient(engines, tensor_parallel, 0.8 * timeout_s)
        self._source = GatheredSource(module) if backend == "shared_memory" else DigestedSource(module)
        self._transfer: Any = None
        if isinstance(self._source, DigestedSource):
            self._transfer = _vllm_transfer(backend, rank, len(engines) * tensor_parallel, client, self._source)
        elif rank == 0:
            self._transfer = SharedMemorySender(client, self._source, movable=movable)

    def send(self) -> str | None:
        """Sends all weights to all engines and returns the digest of what was sent, which rank 0 knows."""
        if self._transfer is None:
            for _ in self._source:
                pass
            return None
        sent = self._transfer.send_weights()
        return self._source.digest.hexdigest() if isinstance(self._source, DigestedSource) else sent


def _vllm_transfer(backend: str, rank: int, receivers: int, client: EngineClient, source: DigestedSource) -> Any:
    """The trainer's end of vLLM's own CUDA IPC or NCCL engine."""
    from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory  # noqa: PLC0415 - ten seconds
    from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo  # noqa: PLC0415
    from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo  # noqa: PLC0415

    if backend == "ipc":
        info: Any = IPCTrainerInitInfo(rank=rank, packed=True)
    else:
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = probe.getsockname()[1]
        address = ray.util.get_node_ip_address()
        info = NCCLTrainerInitInfo(rank=rank, master_address=address, master_port=port, world_size=1 + receivers)
    return WeightTransferTrainerFactory.trainer_init(info, client=client, source=source)
