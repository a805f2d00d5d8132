"""Means and order statistics by sequence and over the optimiser step, the same for every split of it."""

from __future__ import annotations

import struct

import torch
from torch import Tensor

from maspo_rl.types import Reduce, TokenBatch

DIGIT_BITS = 16


def sequence_starts(batch: TokenBatch) -> Tensor:
    """Where each sequence begins, and after the last of them N: [S + 1]. Tokens lie in the order of their sequences."""
    rows = torch.arange(len(batch.group) + 1, device=batch.sequence.device)
    return torch.searchsorted(batch.sequence, rows)


def sequence_mean(values: Tensor, length: Tensor) -> Tensor:
    """Mean of `values[N]` over each sequence of `length[S]` tokens, [S]; NaN for one without tokens."""
    return torch.segment_reduce(values, "sum", lengths=length, unsafe=True).div_(length)


def sequence_quantile(values: Tensor, batch: TokenBatch, quantile: float) -> Tensor:
    """Quantile of `values[N]` over each token's sequence, [N], interpolated linearly as torch.quantile does."""
    order = values.argsort()
    order = order[batch.sequence[order].argsort(stable=True)]
    ascending, starts = values[order], sequence_starts(batch)
    first, length = starts[batch.sequence], starts.diff()[batch.sequence]
    position = ((length - 1) * quantile).to(values.dtype)
    below, above = ascending[first + position.floor().long()], ascending[first + position.ceil().long()]
    return torch.lerp(below, above, position.frac())


def kth_smallest(values: Tensor, k: int, reduce: Reduce) -> Tensor:
    """The k-th smallest (k >= 1) of all ranks' floating `values`, exactly; the largest if there are fewer than k.

    A radix selection: in each round the ranks add up their histograms of the next 16 bits. Returns one value in the
    type of `values`, the same on every rank; +infinity if there are no values at all.
    """
    keys, bits = _sortable(values)
    count = int(reduce(torch.tensor(len(keys), device=keys.device), "sum"))
    if count == 0:
        return values.new_tensor(float("inf"))
    rank, key = min(k, count), 0
    for shift in range(bits - DIGIT_BITS, -1, -DIGIT_BITS):
        digits = (keys >> shift) & (2**DIGIT_BITS - 1)
        cumulative = reduce(torch.bincount(digits, minlength=2**DIGIT_BITS), "sum").cumsum(0)
        digit = int(torch.searchsorted(cumulative, torch.tensor(rank, device=keys.device)))
        rank -= int(cumulative[digit - 1]) if digit else 0
        keys = keys[digits == digit]
        key = key << DIGIT_BITS | digit
    return values.new_tensor(_unsorted(key, bits))


def _sortable(values: Tensor) -> tuple[Tensor, int]:
    """Bit patterns [N] int64 that, read as unsigned numbers of so many bits, are in the order of the values."""
    if values.dtype == torch.float64:
        pattern = values.view(torch.int64)
        return torch.where(pattern < 0, ~pattern, pattern | -(2**63)), 64
    pattern = values.float().view(torch.int32).long()
    return torch.where(pattern < 0, ~pattern, pattern | 2**31) & (2**32 - 1), 32


def _unsorted(key: int, bits: int) -> float:
    """The value whose sortable pattern is `key`."""
    top = 1 << (bits - 1)
    pattern = key ^ top if key & top else key ^ (2 * top - 1)
    unsigned, floating = ("<Q", "<d") if bits == 64 else ("<I", "<f")
    (value,) = struct.unpack(floating, struct.pack(unsigned, pattern))
    return float(value)


def sequence_keys(batch: TokenBatch, starts: Tensor) -> Tensor:
    """A hash [S] int64 of each sequence's length and of its last old log-probability, the same for every split;
    `starts` are `sequence_starts`."""
    if not len(batch.old_logprob):
        return starts[:-1]
    last = (starts[1:] - 1).clamp_(min=0)
    return starts.diff() * _ODD + batch.old_logprob[last].float().view(torch.int32)


def token_lot(batch: TokenBatch, tokens: Tensor) -> Tensor:
    """A lot in [0, 1) for each of the `tokens` (indices [K]), float64 [K]: a hash of its sequence and its place there,
    so that it is the same for every split."""
    rows = batch.sequence[tokens]
    starts = sequence_starts(batch)
    mixed = _mix((tokens - starts[rows]) * _ODD + sequence_keys(batch, starts)[rows])
    return (mixed & (2**53 - 1)).double() * 2.0**-53


_ODD = 0x5851F42D4C957F2D
"""Knuth's multiplier (MMIX): neighbouring numbers land far apart."""


def _mix(bits: Tensor) -> Tensor:
    """Every bit of the result depends on every bit of `bits`: two rounds of shift and product, which wraps around."""
    bits = (bits ^ bits >> 32) * -0x40A7B892E31B1A47
    bits = (bits ^ bits >> 29) * -0x6B2FB644ECCEEE15
    return bits ^ bits >> 32
