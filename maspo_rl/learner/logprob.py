"""Log-probs of sampled tokens from hidden states, without the logits of all tokens at once.

Logits exist in blocks, some tokens times a part of the vocabulary, that stay in a CPU's cache and are worked on in
place. The forward pass keeps the blocks of its first tokens, up to `KEPT_ELEMENTS`, and the backward pass makes the
others again: one matrix product beside the naive three. All is in base 2 inside, as exp2 is four times as fast as exp
on a CPU (0.16 and 0.58 ns an element on two cores with AVX2). Where no cache holds a block, on a GPU, each of its uses
is one kernel, `logprob_triton.TritonChunk`, and elsewhere torch's operators, `TorchChunk`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

KEPT_ELEMENTS = 1 << 26
"""Logits that wait for the backward pass; float32: 256 MiB."""
_BLOCK_ELEMENTS = {"cpu": 1 << 20, "cuda": 1 << 25}
_CHUNK_TOKENS = {"cpu": 2048, "cuda": 8192}
_WIDTH_STEP = {"cpu": 1, "cuda": 4096}
"""Blocks are multiples of it wide: tensor cores want rows that begin at multiples of 16 bytes."""
LOG2_E = math.log2(math.e)
LEAST_DISTANCE = -(2.0**20)
"""Two to this power is 0, and 0 times it is 0; with minus infinity in its place that would not be a number."""


def score_tokens(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    *,
    temperature: float,
    entropy_gradient: bool,
    proxy_kappa: float | None,
) -> tuple[Tensor, ...]:
    """(log-prob[N], entropy[N]) in nats of target[N] under softmax((hidden[N, H] weight[V, H]' + bias[V]) / T).

    Float32, or float64 for such inputs. The entropy has a gradient only if asked for. With a kappa, a third [N] without
    gradient: the log-prob under the min-p distribution, renormalised over the tokens that have at least kappa times the
    largest probability; minus infinity where the target is not among them.
    """
    logprob, entropy, proxy = _Scores.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, target, LOG2_E / temperature, entropy_gradient, proxy_kappa
    )
    return (logprob, entropy) if proxy_kappa is None else (logprob, entropy, proxy)


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        scale: float,
        entropy_gradient: bool,
        proxy_kappa: float | None,
    ) -> tuple[Tensor, ...]:
        ctx.scale, ctx.entropy_gradient, ctx.kept = scale, entropy_gradient, []
        room, scores = KEPT_ELEMENTS if any(ctx.needs_input_grad) else 0, []
        for rows in _chunks(hidden, len(weight)):
            room -= (rows.stop - rows.start) * len(weight)
            ctx.kept.append([] if room >= 0 else None)
            chunk = chunk_type(hidden.device)(hidden[rows], weight, bias, target[rows], scale, ctx.kept[-1])
            scores.append(chunk.scores(proxy_kappa))
        logprob, entropy, log_total, proxy = (torch.cat(parts) for parts in zip(*scores, strict=True))
        ctx.save_for_backward(hidden, weight, bias, target, entropy, log_total)
        ctx.mark_non_differentiable(proxy, *(() if entropy_gradient else (entropy,)))
        return logprob, entropy, proxy

    @staticmethod
    def backward(ctx: Any, by_logprob: Tensor, by_entropy: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, target, entropy, log_total = ctx.saved_tensors
        kept, ctx.kept = ctx.kept, [None] * len(ctx.kept)  # overwritten here: a second backward makes them again
        # Of bfloat16 inputs float32 sums: they are of as many terms as there are blocks.
        by_hidden = torch.empty_like(hidden, dtype=by_logprob.dtype)
        by_weight = torch.empty_like(weight) if ctx.needs_input_grad[1] else None
        by_bias = torch.zeros_like(bias, dtype=by_logprob.dtype) if ctx.needs_input_grad[2] else None
        for rows, blocks in zip(_chunks(hidden, len(weight)), kept, strict=True):
            chunk = chunk_type(hidden.device)(hidden[rows], weight, bias, target[rows], ctx.scale, blocks)
            gradients = (by_logprob[rows], by_entropy[rows] if ctx.entropy_gradient else None)
            for entries, block in chunk.logit_gradients(*gradients, entropy[rows], log_total[rows]):
                factor = block.to(hidden.dtype)
                _add_product(by_hidden[rows], factor, weight[entries], first=entries.start == 0)
                if by_weight is not None:
                    _add_product(by_weight[entries], factor.T, hidden[rows], first=rows.start == 0)
                if by_bias is not None:
                    by_bias[entries] += block.sum(0, dtype=by_bias.dtype)
        by_bias = by_bias.to(bias.dtype) if by_bias is not None else None
        return by_hidden.to(hidden.dtype), by_weight, by_bias, None, None, None, None


def _add_product(total: Tensor, left: Tensor, right: Tensor, *, first: bool) -> None:
    """total = left right, or total += left right; an uninitialised total is fine for the first."""
    if total.dtype == left.dtype:
        torch.addmm(total, left, right, beta=0.0 if first else 1.0, out=total)
    elif first:
        total.copy_(left @ right)
    else:
        total += left @ right


def _chunks(hidden: Tensor, vocabulary: int) -> Iterator[slice]:
    """Rows to be worked on together: those whose logits are kept, then the others. Of no tokens, one empty chunk."""
    tokens, most = len(hidden), _CHUNK_TOKENS[hidden.device.type]
    kept = min(tokens, KEPT_ELEMENTS // vocabulary)
    starts = [*range(0, kept, most), *range(kept, tokens, most)] or [0]
    for start, end in zip(starts, [*starts[1:], tokens], strict=True):
        yield slice(start, end)


def chunk_type(device: torch.device) -> type[Chunk]:
    """Whose arithmetic is the device's own."""
    if device.type != "cuda":
        return TorchChunk
    from maspo_rl.learner.logprob_triton import TritonChunk  # noqa: PLC0415  no CPU needs Triton

    return TritonChunk


@dataclass(slots=True)
class Rows:
    """What is known of each token after some blocks, [n] each. Distances are those of logits to the peak."""

    peak: Tensor
    total: Tensor
    """The sum of two to the power of each distance."""
    moment: Tensor
    """The sum of the same times the distance."""
    chosen: Tensor
    """The target's logit."""
    scratch: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RowGradients:
    """What the gradient by a token's logits comes from, [n] each; those by the scores have the scale in them."""

    by_logprob: Tensor
    by_entropy: Tensor | None
    entropy: Tensor
    log_total: Tensor


@dataclass(frozen=True, slots=True)
class Chunk(ABC):
    """n tokens. Logits are made whenever they are asked for, or once, where there is a list to keep them."""

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None
    target: Tensor
    scale: float
    kept: list[Tensor] | None

    @property
    @abstractmethod
    def block_dtype(self) -> torch.dtype:
        """What logits wait in."""

    @abstractmethod
    def fill(self, block: Tensor, entries: slice) -> None:
        """The head's product for `entries`, and as much of its bias and scale as the others don't see to."""

    @abstractmethod
    def observe(self, block: Tensor, entries: slice, rows: Rows) -> None:
        """Updates all that is known of the rows."""

    @abstractmethod
    def likely(self, block: Tensor, entries: slice, rows: Rows, least: Tensor) -> Tensor:
        """[n]: the part of each row's total that logits from `least` on make up."""

    @abstractmethod
    def differentiate(self, block: Tensor, entries: slice, rows: RowGradients) -> Tensor:
        """The block again, as the gradient by the head's output."""

    def scores(self, proxy_kappa: float | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Log-prob, entropy, base-2 logarithm of the sum of all powers, and log-prob of the proxy: each [n]."""
        chosen, total, moment = torch.zeros(3, len(self.target), dtype=self.dtype, device=self.hidden.device)
        peak = torch.full_like(total, -1e30)  # finite, as it is multiplied by the total, which is 0 yet
        rows = Rows(peak, total, moment, chosen)
        for entries, block in self._blocks():
            self.observe(block, entries, rows)
        log_range = rows.total.log2()
        log_total = rows.peak + log_range
        logprob, entropy = (rows.chosen - log_total) / LOG2_E, (log_range - rows.moment / rows.total) / LOG2_E
        proxy = torch.empty_like(logprob) if proxy_kappa is None else self._proxy(proxy_kappa, rows)
        return logprob, entropy, log_total, proxy

    def logit_gradients(
        self, by_logprob: Tensor, by_entropy: Tensor | None, entropy: Tensor, log_total: Tensor
    ) -> Iterator[tuple[slice, Tensor]]:
        """Gradients by the head's output, block by block: (vocabulary entries, [n, entries])."""
        rate = self.scale / LOG2_E
        by_entropy = by_entropy * rate if by_entropy is not None else None
        rows = RowGradients(by_logprob * rate, by_entropy, entropy, log_total)
        for entries, block in self._blocks():
            yield entries, self.differentiate(block, entries, rows)

    def _proxy(self, kappa: float, rows: Rows) -> Tensor:
        least, total = rows.peak + math.log2(kappa), torch.zeros_like(rows.peak)
        for entries, block in self._blocks():
            total += self.likely(block, entries, rows, least)
        return ((rows.chosen - rows.peak - total.log2()) / LOG2_E).masked_fill(rows.chosen < least, -torch.inf)

    def _blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """(vocabulary entries, logits [n, entries]), which may be overwritten. Those not kept share their memory."""
        starts = range(0, len(self.weight), self._width)
        parts = [slice(start, min(start + self._width, len(self.weight))) for start in starts]
        if self.kept:
            yield from zip(parts, self.kept, strict=True)
            return
        shared = self.room(self.block_dtype) if self.kept is None else None
        for entries in parts:
            shape = (len(self.hidden), entries.stop - entries.start)
            room = self.room(self.block_dtype) if shared is None else shared
            block = room[: math.prod(shape)].view(shape)
            self.fill(block, entries)
            if self.kept is not None:
                self.kept.append(block)
            yield entries, block

    def room(self, dtype: torch.dtype) -> Tensor:
        """Uninitialised numbers, enough for a block."""
        return self.hidden.new_empty(len(self.hidden) * self._width, dtype=dtype)

    @property
    def dtype(self) -> torch.dtype:
        """What is summed up in."""
        return torch.promote_types(self.hidden.dtype, torch.float32)

    @property
    def _width(self) -> int:
        device, tokens = self.hidden.device.type, max(1, len(self.hidden))
        step = _WIDTH_STEP[device]
        return min(len(self.weight), max(step, _BLOCK_ELEMENTS[device] // tokens // step * step))


class TorchChunk(Chunk):
    """Blocks hold base-2 logits with bias and scale."""

    __slots__ = ()

    @property
    def block_dtype(self) -> torch.dtype:
        return self.dtype

    def fill(self, block: Tensor, entries: slice) -> None:
        if self.hidden.dtype == block.dtype:
            torch.mm(self.hidden, self.weight[entries].T, out=block)
        else:
            block.copy_(self.hidden @ self.weight[entries].T)
        if self.bias is not None:
            block += self.bias[entries]
        block *= self.scale

    def observe(self, block: Tensor, entries: slice, rows: Rows) -> None:
        if not rows.scratch:
            rows.scratch.extend((self.room(self.dtype), self.room(self.dtype)))
        distances, powers = (room[: block.numel()].view_as(block) for room in rows.scratch)
        higher = torch.maximum(rows.peak, block.amax(1))
        fall = rows.peak - higher
        shrink = fall.exp2()
        distance = torch.sub(block, higher[:, None], out=distances)
        power = torch.exp2(distance.clamp_min_(LEAST_DISTANCE), out=powers)
        rows.moment = shrink * (rows.moment + fall * rows.total) + torch.linalg.vecdot(power, distance)
        rows.total = shrink * rows.total + power.sum(1)
        rows.peak = higher
        column, inside = self._target_within(entries)
        rows.chosen = torch.where(inside, block.gather(1, column[:, None])[:, 0], rows.chosen)

    def likely(self, block: Tensor, entries: slice, rows: Rows, least: Tensor) -> Tensor:
        powers = rows.scratch[0][: block.numel()].view_as(block)
        power = torch.sub(block, rows.peak[:, None], out=powers).exp2_()
        return power.masked_fill_(block < least[:, None], 0.0).sum(1)

    def differentiate(self, block: Tensor, entries: slice, rows: RowGradients) -> Tensor:
        block.sub_(rows.log_total[:, None])
        if rows.by_entropy is None:
            block.exp2_().mul_(-rows.by_logprob[:, None])
        else:
            pull = (block / LOG2_E + rows.entropy[:, None]) * rows.by_entropy[:, None]
            block.exp2_().mul_(pull.add_(rows.by_logprob[:, None]).neg_())
        column, inside = self._target_within(entries)
        return block.scatter_add_(1, column[:, None], (rows.by_logprob * inside)[:, None])

    def _target_within(self, entries: slice) -> tuple[Tensor, Tensor]:
        """Each token's column [n] within a block, and whether its target is there [n]."""
        column = self.target - entries.start
        return column.clamp(0, entries.stop - entries.start - 1), (column >= 0) & (self.target < entries.stop)
