"""A checksum that both ends of a transfer compute where the tensors lie, on CPU or GPU."""

from __future__ import annotations

import zlib

import torch
from torch import Tensor

_CHUNK_ELEMENTS = 1 << 22
_MULTIPLIER = 0x5851F42D4C957F2D  # an odd 64-bit constant (Knuth's MMIX generator): any flipped bit changes the sum
_WRAP = 1 << 64


def tensor_digest(name: str, tensor: Tensor) -> int:
    """64-bit checksum of one tensor's name, shape and bytes.

    Every 16-bit word w at position i adds w * ((2i + 1) * multiplier) modulo 2**64. The weight is odd, so a changed
    word always changes the sum, and words that change places do too. Integer sums have no rounding: the result is
    the same on every device.
    """
    words = tensor.detach().contiguous().view(-1).view(torch.int16)
    total = zlib.crc32(f"{name}:{tuple(tensor.shape)}:{tensor.dtype}".encode())
    for start in range(0, words.numel(), _CHUNK_ELEMENTS):
        chunk = words[start : start + _CHUNK_ELEMENTS].to(torch.int64)
        position = torch.arange(start, start + chunk.numel(), device=chunk.device, dtype=torch.int64)
        total += int((chunk * (2 * position + 1) * _signed(_MULTIPLIER)).sum().item())
    return total % _WRAP


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
