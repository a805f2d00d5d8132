"""A checksum that both ends of a transfer compute where the tensors lie, on CPU or GPU."""

from __future__ import annotations

import zlib
from functools import cache

import torch
from torch import Tensor

_ROW_WORDS = 1 << 13
_CHUNK_WORDS = 1 << 17  # 1 MiB: it is read twice, the second time out of a core's cache
WORD_BYTES = 8
_MULTIPLIER = 0x5851F42D4C957F2D  # an odd 64-bit constant (Knuth's MMIX generator): any flipped bit changes the sum
_WRAP = 1 << 64


def weighted_sum(tensor: Tensor, first: int = 0) -> int:
    """Sum over all 64-bit words w of the tensor's bytes, at positions i from `first`, of w * (2i + 1), modulo 2**64.

    The last word is filled up with zeros. The weight is odd, so a changed word always changes the sum, and words that
    change places do too. Integer sums have no rounding: the result is the same on every device.

    In rows of C words, i = first + row * C + column. The sum of w * (2 column + 1) is one over the columns' sums, that
    of w * 2 (first + row * C) one over the rows' sums. So words are only added, and there are few products.
    """
    data = tensor.detach().contiguous().view(-1).view(torch.uint8)
    whole = data.numel() // (_ROW_WORDS * WORD_BYTES) * (_ROW_WORDS * WORD_BYTES)
    aligned = data.data_ptr() % WORD_BYTES == 0 == data.storage_offset() % WORD_BYTES
    weights = _odd_numbers(data.device, _ROW_WORDS)
    columns = torch.zeros_like(weights)
    rows = []
    for part in torch.split(data[:whole], _CHUNK_WORDS * WORD_BYTES) if whole else ():
        words = (part if aligned else part.clone()).view(torch.int64).view(-1, _ROW_WORDS)
        columns += words.sum(0)
        rows.append(words.sum(1))
    tail = data[whole:]
    if len(tail) % WORD_BYTES or not aligned:
        tail = torch.nn.functional.pad(tail, (0, -len(tail) % WORD_BYTES)).clone()
    words = tail.view(torch.int64)
    columns[: len(words)] += words
    row = torch.cat([*rows, words.sum()[None]])
    begins = 2 * (first + _ROW_WORDS * torch.arange(len(row), dtype=torch.int64, device=data.device))
    return (int((columns * weights).sum().item()) + int((row * begins).sum().item())) % _WRAP


@cache
def _odd_numbers(device: torch.device, count: int) -> Tensor:
    return 2 * torch.arange(count, dtype=torch.int64, device=device) + 1


def hexdigest(described: str, total: int) -> str:
    """16 hexadecimal digits of a weighted sum and of what the bytes are said to be."""
    return f"{_combined(described, total):016x}"


def tensor_digest(name: str, tensor: Tensor) -> int:
    """64-bit checksum of one tensor's name, shape and bytes: `weighted_sum` times an odd multiplier."""
    return _combined(f"{name}:{tuple(tensor.shape)}:{tensor.dtype}", weighted_sum(tensor))


def _combined(described: str, total: int) -> int:
    return (zlib.crc32(described.encode()) + total * _MULTIPLIER) % _WRAP


class RunningDigest:
    """Digest of a stream of named tensors. The order does not matter; each name must come once."""

    def __init__(self) -> None:
        self._total = 0
        self._names: set[str] = set()

    def add(self, name: str, tensor: Tensor) -> None:
        """Raises ValueError if `name` was added before."""
        if name in self._names:
            raise ValueError(f"tensor {name!r} was transferred twice in one update")
        self._names.add(name)
        self._total = (self._total + tensor_digest(name, tensor)) % _WRAP

    def hexdigest(self) -> str:
        """16 hexadecimal digits over all tensors, and their number."""
        return f"{self._total:016x}-{len(self._names)}"
