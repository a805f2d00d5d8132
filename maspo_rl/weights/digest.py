"""A checksum that both ends of a transfer compute where the tensors lie, on CPU or GPU."""

from __future__ import annotations

import zlib

import torch
from torch import Tensor

_CHUNK_WORDS = 1 << 17  # 1 MiB of words and as much of weights: both stay in a core's cache
_WORD_BYTES = 8
_MULTIPLIER = 0x5851F42D4C957F2D  # an odd 64-bit constant (Knuth's MMIX generator): any flipped bit changes the sum
_WRAP = 1 << 64


def tensor_digest(name: str, tensor: Tensor) -> int:
    """64-bit checksum of one tensor's name, shape and bytes.

    Every 64-bit word w at position i, the last one filled up with zeros, adds w * ((2i + 1) * multiplier) modulo
    2**64. The weight is odd, so a changed word always changes the sum, and words that change places do too. Integer
    sums have no rounding: the result is the same on every device.
    """
    data = tensor.detach().contiguous().view(-1).view(torch.uint8)
    total = zlib.crc32(f"{name}:{tuple(tensor.shape)}:{tensor.dtype}".encode())
    whole = data.numel() // _WORD_BYTES * _WORD_BYTES
    tail = torch.nn.functional.pad(data[whole:], (0, whole + _WORD_BYTES - data.numel()))
    weights = _weights(min(_CHUNK_WORDS, whole // _WORD_BYTES + 1), data.device)
    first, aligned = 0, data.data_ptr() % _WORD_BYTES == 0 == data.storage_offset() % _WORD_BYTES
    summed = torch.zeros((), dtype=torch.int64, device=data.device)
    for part in (*torch.split(data[:whole], _CHUNK_WORDS * _WORD_BYTES), tail):
        words = (part if aligned else part.clone()).view(torch.int64)
        summed += (words * weights[: len(words)]).sum() + words.sum() * _signed(2 * first * _MULTIPLIER % _WRAP)
        first += len(words)
    return (total + int(summed.item())) % _WRAP


def _weights(count: int, device: torch.device) -> Tensor:
    """(2i + 1) * multiplier of the first `count` positions; those of a later chunk are larger by a constant."""
    position = torch.arange(count, device=device, dtype=torch.int64)
    return (2 * position + 1) * _signed(_MULTIPLIER)


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


def _signed(value: int) -> int:
    return value - _WRAP if value >= _WRAP // 2 else value
