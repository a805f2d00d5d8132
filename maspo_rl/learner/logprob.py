"""Log-probs of sampled tokens from hidden states, without the logits of all tokens at once.

Logits exist in blocks, some tokens times a part of the vocabulary, that stay in a CPU's cache and are worked on in
place. The forward pass keeps the blocks of its first tokens, up to `KEPT_ELEMENTS`, and the backward pass makes the
others again: one matrix product beside the naive three. All is in base 2 inside, as exp2 is four times as fast as exp
on a CPU (0.16 and 0.58 ns an element on two cores with AVX2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

KEPT_ELEMENTS = 1 << 26
"""Logits that wait for the backward pass; float32: 256 MiB."""
_BLOCK_ELEMENTS = {"cpu": 1 << 20, "cuda": 1 << 25}
_CHUNK_TOKENS = {"cpu": 2048, "cuda": 8192}
_LOG2_E = math.log2(math.e)
_LEAST_DISTANCE = -(2.0**20)
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
        hidden, weight, bias, target, _LOG2_E / temperature, entropy_gradient, proxy_kappa
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
            chunk = _Chunk(hidden[rows], weight, bias, target[rows], scale, ctx.kept[-1])
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
            chunk = _Chunk(hidden[rows], weight, bias, target[rows], ctx.scale, blocks)
            gradients = (by_logprob[rows], by_entropy[rows] if ctx.entropy_gradient else None)
            for entries, block in chunk.logit_gradients(*gradients, entropy[rows], log_total[rows]):
                factor = block.to(hidden.dtype)
                _add_product(by_hidden[rows], factor, weight[entries], first=entries.start == 0)
                if by_weight is not None:
                    _add_product(by_weight[entries], factor.T, hidden[rows], first=rows.start == 0)
                if by_bias is not None:
                    by_bias[entries] += block.sum(0)
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


@dataclass(frozen=True, slots=True)
class _Chunk:
    """n tokens. Base-2 logits are made whenever they are asked for, or once, where there is a list to keep them."""

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None
    target: Tensor
    scale: float
    kept: list[Tensor] | None

    def scores(self, proxy_kappa: float | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Log-prob, entropy, base-2 logarithm of the sum of all powers, and log-prob of the proxy: each [n]."""
        chosen, total, moment = torch.zeros(3, len(self.target), dtype=self._dtype, device=self.hidden.device)
        peak = torch.full_like(total, -1e30)  # finite, as it is multiplied by the total, which is 0 yet
        distances, powers = self._room(), self._room()
        for entries, block in self._blocks():
            higher = torch.maximum(peak, block.amax(1))
            fall = peak - higher
            shrink = fall.exp2()
            distance = torch.sub(block, higher[:, None], out=distances[: block.numel()].view_as(block))
            power = torch.exp2(distance.clamp_min_(_LEAST_DISTANCE), out=powers[: block.numel()].view_as(block))
            moment = shrink * (moment + fall * total) + torch.linalg.vecdot(power, distance)
            total = shrink * total + power.sum(1)
            peak = higher
            column, inside = self._target_within(entries)
            chosen = torch.where(inside, block.gather(1, column[:, None])[:, 0], chosen)
        log_total = peak + total.log2()
        logprob, entropy = (chosen - log_total) / _LOG2_E, (total.log2() - moment / total) / _LOG2_E
        proxy = torch.empty_like(logprob) if proxy_kappa is None else self._proxy(proxy_kappa, chosen, peak)
        return logprob, entropy, log_total, proxy

    def logit_gradients(
        self, by_logprob: Tensor, by_entropy: Tensor | None, entropy: Tensor, log_total: Tensor
    ) -> Iterator[tuple[slice, Tensor]]:
        """Gradients by the head's output, block by block: (vocabulary entries, [n, entries])."""
        by_logprob = by_logprob * (self.scale / _LOG2_E)
        for entries, block in self._blocks():
            block.sub_(log_total[:, None])
            if by_entropy is None:
                block.exp2_().mul_(-by_logprob[:, None])
            else:
                pull = (block / _LOG2_E + entropy[:, None]) * (by_entropy * (self.scale / _LOG2_E))[:, None]
                block.exp2_().mul_(pull.add_(by_logprob[:, None]).neg_())
            column, inside = self._target_within(entries)
            block.scatter_add_(1, column[:, None], (by_logprob * inside)[:, None])
            yield entries, block

    def _proxy(self, kappa: float, chosen: Tensor, peak: Tensor) -> Tensor:
        least = peak + math.log2(kappa)
        total, powers = torch.zeros_like(peak), self._room()
        for _, block in self._blocks():
            power = torch.sub(block, peak[:, None], out=powers[: block.numel()].view_as(block)).exp2_()
            total += power.masked_fill_(block < least[:, None], 0.0).sum(1)
        return ((chosen - peak - total.log2()) / _LOG2_E).masked_fill(chosen < least, -torch.inf)

    def _blocks(self) -> Iterator[tuple[slice, Tensor]]:
        """(vocabulary entries, logits [n, entries]), which may be overwritten. Those not kept share their memory."""
        starts = range(0, len(self.weight), self._width)
        parts = [slice(start, min(start + self._width, len(self.weight))) for start in starts]
        if self.kept:
            yield from zip(parts, self.kept, strict=True)
            return
        shared = self._room() if self.kept is None else None
        for entries in parts:
            shape = (len(self.hidden), entries.stop - entries.start)
            block = (self._room() if shared is None else shared)[: math.prod(shape)].view(shape)
            if self.hidden.dtype == self._dtype:
                torch.mm(self.hidden, self.weight[entries].T, out=block)
            else:
                block.copy_(self.hidden @ self.weight[entries].T)
            if self.bias is not None:
                block += self.bias[entries]
            block *= self.scale
            if self.kept is not None:
                self.kept.append(block)
            yield entries, block

    def _target_within(self, entries: slice) -> tuple[Tensor, Tensor]:
        """Each token's column [n] within a block, and whether its target is there [n]."""
        column = self.target - entries.start
        return column.clamp(0, entries.stop - entries.start - 1), (column >= 0) & (self.target < entries.stop)

    def _room(self) -> Tensor:
        """Uninitialised numbers, enough for a block."""
        return self.hidden.new_empty(len(self.hidden) * self._width, dtype=self._dtype)

    @property
    def _width(self) -> int:
        return min(len(self.weight), max(1, _BLOCK_ELEMENTS[self.hidden.device.type] // max(1, len(self.hidden))))

    @property
    def _dtype(self) -> torch.dtype:
        return torch.promote_types(self.hidden.dtype, torch.float32)
