"""How the tensors of a model lie side by side in one shared-memory segment."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from typing import NamedTuple

import torch
from torch import Tensor

_ALIGNMENT = 64


class TensorMeta(NamedTuple):
    """What a parameter is, without its values; `shape` is the whole parameter's, however it is spread over ranks."""

    name: str
    dtype: torch.dtype
    shape: torch.Size


def tensors_in(memory: SharedMemory, metadata: list[TensorMeta]) -> list[tuple[str, Tensor]]:
    """(name, tensor lying in `memory`) pairs. The mapping lasts as long as the process: tensors point into it."""
    tensors = []
    for item, offset in zip(metadata, offsets(metadata), strict=False):
        flat = torch.frombuffer(memory.buf, dtype=item.dtype, count=item.shape.numel(), offset=offset)
        tensors.append((item.name, flat.view(item.shape)))
    # Python's own close, at the object's end, would fail on a buffer that is in use.
    memory._buf = None  # type: ignore[attr-defined]
    memory._mmap = None  # type: ignore[attr-defined]
    return tensors


def offsets(metadata: list[TensorMeta]) -> Iterator[int]:
    """Where each tensor begins, and at last the segment's length."""
    offset = 0
    for item in metadata:
        yield offset
        offset += -(-item.shape.numel() * item.dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    yield offset
