"""The engine's end: what vLLM's workers import, and the digest of what they received.

Importing this module registers the backends in the process it is imported in; vLLM imports it in every worker as
`worker_extension_cls`.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import torch
from torch import Tensor
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.distributed.weight_transfer.ipc_engine import IPCWeightTransferEngine
from vllm.distributed.weight_transfer.nccl_engine import NCCLWeightTransferEngine
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from maspo_rl.cluster.process import give_back_memory
from maspo_rl.weights.digest import RunningDigest
from maspo_rl.weights.in_place import InPlace
from maspo_rl.weights.layout import Segment, TensorMeta

if not torch.cuda.is_available() and torch.cpu._is_amx_tile_supported():
    # A child process that never asked the kernel for the AMX state dies at its first bfloat16 product.
    torch.cpu._init_amx()


@dataclass
class SharedMemoryInitInfo(WeightTransferInitInfo):
    """Name of the segment and, in order, what lies in it."""

    segment: str
    names: list[str]
    dtype_names: list[str]
    shapes: list[list[int]]


@dataclass
class SharedMemoryUpdateInfo(WeightTransferUpdateInfo):
    """Nothing: the segment's layout never changes."""


class SharedMemoryEngine(WeightTransferEngine[SharedMemoryInitInfo, SharedMemoryUpdateInfo]):
    """The engine's side: reads the segment, the first time through vLLM's layerwise reload, then in place if the model
    is one that allows it."""

    init_info_cls = SharedMemoryInitInfo
    update_info_cls = SharedMemoryUpdateInfo

    received_digest: str | None = None
    _segment: Segment | None = None
    _in_place: InPlace | None = None
    _learned = False

    def init_transfer_engine(self, init_info: SharedMemoryInitInfo) -> None:
        metadata = [
            TensorMeta(name, getattr(torch, dtype), torch.Size(shape))
            for name, dtype, shape in zip(init_info.names, init_info.dtype_names, init_info.shapes, strict=True)
        ]
        memory = SharedMemory(init_info.segment)
        # Python before 3.13 registers an opened segment as if it were created here, and would unlink it a second time.
        resource_tracker.unregister(memory._name, "shared_memory")  # type: ignore[attr-defined]
        self._segment = Segment(memory, metadata)
        self._in_place, self._learned = None, False

    def start_weight_update(self) -> None:
        self.received_digest = None
        if self._in_place is None:
            initialize_layerwise_reload(self.model)

    def finish_weight_update(self) -> None:
        if self._in_place is None:
            self._finish_reload()
        self.received_digest = self._received

    def _finish_reload(self) -> None:
        finalize_layerwise_reload(self.model, self.model_config)
        # A head tied to the embedding gets no weights of its own, so that the reload leaves its packed copy, which the
        # CPU kernels multiply with, as it was before the update: stale logits, and no error.
        for layer in self.model.modules():
            if isinstance(layer, ParallelLMHead):
                layer.quant_method.process_weights_after_loading(layer)
        if not self._learned and self._segment is not None:
            self._in_place, self._learned = InPlace.learn(self.model, self._segment.tensors), True
            way = "by vLLM's reload, as not all layers are known" if self._in_place is None else "in place"
            print(f"from now on weights enter {type(self.model).__name__} {way}", flush=True)
            give_back_memory()  # a whole model, which the reload has made beside the present one

    def update_weights(self, update_info: dict[str, Any]) -> None:
        # The base class ends with an accelerator synchronisation, which a CPU does not have.
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: SharedMemoryUpdateInfo) -> None:
        if self._segment is None:
            raise RuntimeError("no segment to read from: init_transfer_engine comes first")
        self._received = self._segment.digest()
        if self._in_place is None:
            self.model.load_weights(self._segment.tensors)
        else:
            self._in_place.load()

    def shutdown(self) -> None:
        self._segment = self._in_place = None


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


class WitnessedIpcEngine(_Witnessed, IPCWeightTransferEngine):
    """vLLM's CUDA IPC engine: learner and engine on the same devices."""


class WitnessedNcclEngine(_Witnessed, NCCLWeightTransferEngine):
    """vLLM's NCCL engine: learner and engine on different devices."""


def engine_backend(backend: str) -> str:
    """Name under which `backend` (shared_memory, ipc, nccl) is registered with vLLM's factory."""
    return f"witnessed_{backend}"


for _name, _engine in (
    ("shared_memory", SharedMemoryEngine),
    ("ipc", WitnessedIpcEngine),
    ("nccl", WitnessedNcclEngine),
):
    if engine_backend(_name) not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine(engine_backend(_name), _engine)


class WorkerExtension:
    """Methods added to vLLM's workers."""

    weight_transfer_engine: Any
    model_runner: Any

    def give_back_cache(self) -> None:
        """Gives the kernel the memory of keys and values that nobody will read again: on a machine whose phases
        alternate, the learner's turn is next. On a CPU; the pages come back, zeroed, as they are used."""
        kernel, page = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE
        for cache in self.model_runner.kv_caches:
            memory = cache.untyped_storage()
            begin = -(-memory.data_ptr() // page) * page
            end = (memory.data_ptr() + memory.nbytes()) // page * page
            if kernel.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(max(0, end - begin)), mmap.MADV_DONTNEED):
                raise OSError(ctypes.get_errno(), "madvise refused a key-value cache")

    def received_digest(self) -> str | None:
        """Digest of the weights of the last finished update, None before the first."""
        return getattr(self.weight_transfer_engine, "received_digest", None)
