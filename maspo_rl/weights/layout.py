"""How the tensors of a model lie side by side in one shared-memory segment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from multiprocessing.shared_memory import SharedMemory
from typing import NamedTuple

import torch
from torch import Tensor

from maspo_rl.weights.digest import WORD_BYTES, hexdigest, weighted_sum

_ALIGNMENT = 64
_BUCKET_BYTES = 1 << 20


class TensorMeta(NamedTuple):
    """What a parameter is, without its values; `shape` is the whole parameter's, however it is spread over ranks."""

    name: str
    dtype: torch.dtype
    shape: torch.Size


class Segment:
    """`memory` as the tensors of `metadata`. The mapping lasts as long as they do."""

    def __init__(self, memory: SharedMemory, metadata: list[TensorMeta]) -> None:
        self._bytes = torch.frombuffer(memory.buf, dtype=torch.uint8)
        self._described = repr(metadata)
        *begins, self._length = offsets(metadata)
        self.tensors: list[tuple[str, Tensor]] = []
        for item, begin in zip(metadata, begins, strict=True):
            data = self._bytes[begin : begin + item.shape.numel() * item.dtype.itemsize]
            self.tensors.append((item.name, data.view(item.dtype).view(item.shape)))
        self._begins = [*begins, self._length]
        # Python's own close, at the object's end, would fail on a buffer that is in use.
        memory._buf = None  # type: ignore[attr-defined]
        memory._mmap = None  # type: ignore[attr-defined]

    def fill(self, source: Iterable[tuple[str, Tensor]]) -> str:
        """Copies all tensors in that are not here already, in order, and returns the digest of the whole: taken of the
        segment's bytes bucket by bucket, as long as they are in the cache."""
        total = begin = 0
        for index, ((_, target), (_, tensor)) in enumerate(zip(self.tensors, source, strict=True), start=1):
            if tensor.data_ptr() != target.data_ptr():
                target.copy_(tensor)
            end = self._begins[index]
            if end - begin >= _BUCKET_BYTES or index == len(self.tensors):
                total += weighted_sum(self._bytes[begin:end], begin // WORD_BYTES)
                begin = end
        return hexdigest(self._described, total)

    def digest(self) -> str:
        """Of names, shapes, number formats and the bytes that lie here now."""
        return hexdigest(self._described, weighted_sum(self._bytes[: self._length]))


def offsets(metadata: list[TensorMeta]) -> Iterator[int]:
    """Where each tensor begins, and at last the segment's length."""
    offset = 0
    for item in metadata:
        yield offset
        offset += -(-item.shape.numel() * item.dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    yield offset
