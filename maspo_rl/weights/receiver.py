"""The engine's end: what vLLM's workers import, and the digest of what they received.

Importing this module registers the backends in the process it is imported in; vLLM imports it in every worker as
`worker_extension_cls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.distributed.weight_transfer.ipc_engine import IPCWeightTransferEngine
from vllm.distributed.weight_transfer.nccl_engine import NCCLWeightTransferEngine

from maspo_rl.weights.digest import RunningDigest
from maspo_rl.weights.shared_memory import SharedMemoryEngine

if not torch.cuda.is_available() and torch.cpu._is_amx_tile_supported():
    # A child process that never asked the kernel for the AMX state dies at its first bfloat16 product.
    torch.cpu._init_amx()


class _Witness:
    """Stands in for the model while weights arrive: digests each tensor on its way to the model's loader."""

    def __init__(self, model: torch.nn.Module, digest: RunningDigest) -> None:
        self._model = model
        self._digest = digest

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> Any:
        return self._model.load_weights(self._digested(weights))  # type: ignore[operator]

    def _digested(self, weights: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in weights:
            self._digest.add(name, tensor)
            yield name, tensor


class _Witnessed:
    """Mixed into a transfer engine: keeps the digest of the last update, over all its chunks."""

    received_digest: str | None = None
    model: Any

    def start_weight_update(self) -> None:
        super().start_weight_update()  # type: ignore[misc]
        self._digest = RunningDigest()
        self.received_digest = None

    def receive_weights(self, update_info: Any) -> None:
        model, self.model = self.model, _Witness(self.model, self._digest)
        try:
            super().receive_weights(update_info)  # type: ignore[misc]
        finally:
            self.model = model

    def finish_weight_update(self) -> None:
        super().finish_weight_update()  # type: ignore[misc]
        self.received_digest = self._digest.hexdigest()


class WitnessedSharedMemoryEngine(_Witnessed, SharedMemoryEngine):
    """Shared memory on one CPU machine."""


class WitnessedIpcEngine(_Witnessed, IPCWeightTransferEngine):
    """vLLM's CUDA IPC engine: learner and engine on the same devices."""


class WitnessedNcclEngine(_Witnessed, NCCLWeightTransferEngine):
    """vLLM's NCCL engine: learner and engine on different devices."""


def engine_backend(backend: str) -> str:
    """Name under which `backend` (shared_memory, ipc, nccl) is registered with vLLM's factory."""
    return f"witnessed_{backend}"


for _name, _engine in (
    ("shared_memory", WitnessedSharedMemoryEngine),
    ("ipc", WitnessedIpcEngine),
    ("nccl", WitnessedNcclEngine),
):
    if engine_backend(_name) not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine(engine_backend(_name), _engine)


class WorkerExtension:
    """Methods added to vLLM's workers."""

    weight_transfer_engine: Any

    def received_digest(self) -> str | None:
        """Digest of the weights of the last finished update, None before the first."""
        return getattr(self.weight_transfer_engine, "received_digest", None)
