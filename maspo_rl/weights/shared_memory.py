"""vLLM weight transfer through one shared-memory segment, for learner and engines on one CPU machine.

The sending rank lays all tensors side by side in the segment and the engines read them from there: one copy in, no
copy out before the engine's own loader. The segment's name is removed as soon as every engine has opened it, so that
nothing is left behind however the processes end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from vllm.distributed.weight_transfer.base import (
    ParamMeta,
    TrainerInitInfo,
    TrainerWeightTransferEngine,
    VLLMWeightSyncClient,
    WeightSource,
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

_ALIGNMENT = 64


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


@dataclass
class SharedMemoryTrainerInfo(TrainerInitInfo):
    """Trainer's side: `rank` 0 owns the segment."""

    backend: ClassVar[str] = "shared_memory"


class _Layout:
    """Places the tensors of a model in one buffer of `nbytes`."""

    def __init__(self, metadata: list[ParamMeta]) -> None:
        self.metadata = metadata
        self.offsets: list[int] = []
        self.nbytes = 0
        for item in metadata:
            self.offsets.append(self.nbytes)
            size = torch.Size(item.shape).numel() * item.dtype.itemsize
            self.nbytes += -(-size // _ALIGNMENT) * _ALIGNMENT

    def views(self, memory: SharedMemory) -> Iterator[tuple[str, Tensor]]:
        """(name, tensor lying in `memory`) pairs."""
        for item, offset in zip(self.metadata, self.offsets, strict=True):
            count = torch.Size(item.shape).numel()
            flat = torch.frombuffer(memory.buf, dtype=item.dtype, count=count, offset=offset)
            yield item.name, flat.view(item.shape)


def _disown(memory: SharedMemory) -> None:
    """Leaves the mapping to the process's end: tensors still point into it, so that Python's close would fail."""
    memory._buf = None  # type: ignore[attr-defined]
    memory._mmap = None  # type: ignore[attr-defined]


class SharedMemoryEngine(WeightTransferEngine[SharedMemoryInitInfo, SharedMemoryUpdateInfo]):
    """The engine's side: reads the segment through vLLM's layerwise reload."""

    init_info_cls = SharedMemoryInitInfo
    update_info_cls = SharedMemoryUpdateInfo

    _weights: list[tuple[str, Tensor]]

    def init_transfer_engine(self, init_info: SharedMemoryInitInfo) -> None:
        metadata = [
            ParamMeta(name, getattr(torch, dtype), tuple(shape))
            for name, dtype, shape in zip(init_info.names, init_info.dtype_names, init_info.shapes, strict=True)
        ]
        memory = SharedMemory(init_info.segment)
        # Python before 3.13 registers an opened segment as if it were created here, and would unlink it a second time.
        resource_tracker.unregister(memory._name, "shared_memory")  # type: ignore[attr-defined]
        self._weights = list(_Layout(metadata).views(memory))
        _disown(memory)

    def start_weight_update(self) -> None:
        initialize_layerwise_reload(self.model)

    def finish_weight_update(self) -> None:
        finalize_layerwise_reload(self.model, self.model_config)
        # A head tied to the embedding gets no weights of its own, so that the reload leaves its packed copy, which the
        # CPU kernels multiply with, as it was before the update: stale logits, and no error.
        for layer in self.model.modules():
            if isinstance(layer, ParallelLMHead):
                layer.quant_method.process_weights_after_loading(layer)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        # The base class ends with an accelerator synchronisation, which a CPU does not have.
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: SharedMemoryUpdateInfo) -> None:
        self.model.load_weights(self._weights)

    def shutdown(self) -> None:
        self._weights = []


class SharedMemoryTrainerEngine(TrainerWeightTransferEngine[SharedMemoryTrainerInfo]):
    """The learner's side: rank 0 copies every tensor into the segment, other ranks join the gathering."""

    init_info_cls = SharedMemoryTrainerInfo
    source: WeightSource

    @classmethod
    def trainer_init(
        cls, init_info: SharedMemoryTrainerInfo, *, client: VLLMWeightSyncClient, source: WeightSource | None = None
    ) -> Self:
        if source is None:
            raise ValueError("the shared-memory transfer needs a WeightSource")
        engine = cls(client=client, source=source, is_sender=init_info.is_sender)
        if engine.is_sender:
            engine._open(source.metadata())
        return engine

    def _open(self, metadata: list[ParamMeta]) -> None:
        layout = _Layout(metadata)
        memory = SharedMemory(create=True, size=max(layout.nbytes, 1))
        try:
            info = SharedMemoryInitInfo(
                segment=memory.name,
                names=[item.name for item in metadata],
                dtype_names=[str(item.dtype).removeprefix("torch.") for item in metadata],
                shapes=[list(item.shape) for item in metadata],
            )
            self.client.init_weight_transfer_engine(asdict(info))
        finally:
            memory.unlink()
        self._views = list(layout.views(memory))
        _disown(memory)

    def send_weights(self) -> None:
        if not self.is_sender:
            for _ in self.source:
                pass
            return
        for (name, target), (sent_name, tensor) in zip(self._views, self.source, strict=True):
            if name != sent_name:
                raise ValueError(f"the weight source yielded {sent_name!r} where {name!r} was declared")
            target.copy_(tensor)
        self.client.start_weight_update()
        self.client.update_weights({})
        self.client.finish_weight_update()
