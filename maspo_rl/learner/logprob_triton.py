"""Log-probs on a GPU: the matrix products are torch's, and each use of a block of logits is one kernel.

A block [n, width] holds the head's plain product in the head's own number format, and becomes its own gradient. Each
kernel reads it once, and adds the bias and the scale in the format of the sums, which is that of the rows [n]. What
torch's operators would do to a block in ten passes is bound by its memory. No kernel makes one operation of a product
and a sum: that rounds otherwise, and a target that is the peak would have a log-prob above 0.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from maspo_rl.learner.logprob import LEAST_DISTANCE, LOG2_E, Chunk, RowGradients, Rows

_TILE = 4096
"""Logits of a row that a program holds in registers."""
_OPTIONS = {"num_warps": 8, "enable_fp_fusion": False}
_LOG2_E = tl.constexpr(LOG2_E)
_LEAST_DISTANCE = tl.constexpr(LEAST_DISTANCE)


@triton.jit  # type: ignore[untyped-decorator]
def _logits(
    block: tl.tensor,
    bias: tl.tensor | None,
    column: tl.tensor,
    width: tl.tensor,
    scale: tl.constexpr,
    dtype: tl.constexpr,
) -> tl.tensor:
    """[tile] base-2 logits of a row whose first is at `block`; minus infinity beyond its end."""
    logit = tl.load(block + column, mask=column < width, other=float("-inf")).to(dtype)
    if bias is not None:
        logit += tl.load(bias + column, mask=column < width, other=0.0).to(dtype)
    return logit * scale


@triton.jit  # type: ignore[untyped-decorator]
def _observe(
    block: tl.tensor,
    bias: tl.tensor | None,
    target: tl.tensor,
    peaks: tl.tensor,
    totals: tl.tensor,
    moments: tl.tensor,
    chosen: tl.tensor,
    start: tl.tensor,
    width: tl.tensor,
    scale: tl.constexpr,
    tile: tl.constexpr,
) -> None:
    """`Rows` [n] after block [n, width], whose first column is entry `start`; bias [width], target [n]. Grid [n]."""
    row = tl.program_id(0)
    block += row.to(tl.int64) * width
    peak, total, moment = tl.load(peaks + row), tl.load(totals + row), tl.load(moments + row)
    for first in range(0, width, tile):
        logit = _logits(block, bias, first + tl.arange(0, tile), width, scale, peak.dtype)
        higher = tl.maximum(peak, tl.max(logit, 0))
        fall = peak - higher
        shrink = tl.exp2(fall)
        distance = logit - higher
        # No maximum, which would take the other of a number and what is none, and hide the latter.
        distance = tl.where(distance < _LEAST_DISTANCE, _LEAST_DISTANCE, distance)
        power = tl.exp2(distance)
        moment = shrink * (moment + fall * total) + tl.sum(power * distance, 0)
        total = shrink * total + tl.sum(power, 0)
        peak = higher
    tl.store(peaks + row, peak)
    tl.store(totals + row, total)
    tl.store(moments + row, moment)
    column = tl.load(target + row) - start
    if (column >= 0) & (column < width):
        tl.store(chosen + row, _logits(block, bias, column, width, scale, peak.dtype))


@triton.jit  # type: ignore[untyped-decorator]
def _likely(
    block: tl.tensor,
    bias: tl.tensor | None,
    peaks: tl.tensor,
    leasts: tl.tensor,
    sums: tl.tensor,
    width: tl.tensor,
    scale: tl.constexpr,
    tile: tl.constexpr,
) -> None:
    """sums [n]: of two to the power of logits above the peak [n], from `leasts` [n] on; block [n, width]. Grid [n]."""
    row = tl.program_id(0)
    block += row.to(tl.int64) * width
    peak, least = tl.load(peaks + row), tl.load(leasts + row)
    total = peak * 0.0
    for first in range(0, width, tile):
        logit = _logits(block, bias, first + tl.arange(0, tile), width, scale, peak.dtype)
        total += tl.sum(tl.where(logit < least, 0.0, tl.exp2(logit - peak)), 0)
    tl.store(sums + row, total)


@triton.jit  # type: ignore[untyped-decorator]
def _differentiate(
    block: tl.tensor,
    bias: tl.tensor | None,
    target: tl.tensor,
    log_totals: tl.tensor,
    entropies: tl.tensor,
    by_logprobs: tl.tensor,
    by_entropies: tl.tensor | None,
    start: tl.tensor,
    width: tl.tensor,
    scale: tl.constexpr,
    tile: tl.constexpr,
) -> None:
    """Block [n, width] becomes the gradient by the logits; bias [width], the others [n]. Grid [n, tiles of a row]."""
    row = tl.program_id(0)
    block += row.to(tl.int64) * width
    column = tl.program_id(1) * tile + tl.arange(0, tile)
    log_total = tl.load(log_totals + row)
    logprob = _logits(block, bias, column, width, scale, log_total.dtype) - log_total
    by_logprob = tl.load(by_logprobs + row)
    pull = by_logprob
    if by_entropies is not None:
        by_entropy = tl.load(by_entropies + row)
        pull += by_entropy * tl.load(entropies + row) + by_entropy / _LOG2_E * logprob
    gradient = -pull * tl.exp2(logprob)
    gradient = tl.where(column == tl.load(target + row) - start, gradient + by_logprob, gradient)
    tl.store(block + column, gradient.to(block.dtype.element_ty), mask=column < width)


class TritonChunk(Chunk):
    """Blocks hold the head's product alone."""

    __slots__ = ()

    @property
    def block_dtype(self) -> torch.dtype:
        return self.hidden.dtype

    def fill(self, block: Tensor, entries: slice) -> None:
        torch.mm(self.hidden, self.weight[entries].T, out=block)

    def observe(self, block: Tensor, entries: slice, rows: Rows) -> None:
        known = (self.target, rows.peak, rows.total, rows.moment, rows.chosen)
        width, tile = block.shape[1], _tile(block.shape[1])
        options = (entries.start, width, self.scale, tile)
        _observe[(len(block),)](block, self._bias(entries), *known, *options, **_OPTIONS)

    def likely(self, block: Tensor, entries: slice, rows: Rows, least: Tensor) -> Tensor:
        sums, options = torch.empty_like(least), (block.shape[1], self.scale, _tile(block.shape[1]))
        _likely[(len(block),)](block, self._bias(entries), rows.peak, least, sums, *options, **_OPTIONS)
        return sums

    def differentiate(self, block: Tensor, entries: slice, rows: RowGradients) -> Tensor:
        known = (self.target, rows.log_total, rows.entropy, rows.by_logprob, rows.by_entropy)
        width, tile = block.shape[1], _tile(block.shape[1])
        grid = (len(block), triton.cdiv(width, tile))
        _differentiate[grid](block, self._bias(entries), *known, entries.start, width, self.scale, tile, **_OPTIONS)
        return block

    def _bias(self, entries: slice) -> Tensor | None:
        return self.bias[entries] if self.bias is not None else None


def _tile(width: int) -> int:
    return min(_TILE, int(triton.next_power_of_2(width)))
