"""What an objective did to the gradient of a micro-batch, from the gradient itself: the same for every objective."""

from __future__ import annotations

import torch
from torch import Tensor

from maspo_rl.objectives.base import Metric
from maspo_rl.types import TokenBatch

FREE, GATED, CLIPPED = 0, 1, 2
"""State of a token: w >= r; 0 < w < r by more than 0.1 %; w = 0."""


def diagnose(batch: TokenBatch, ratio: Tensor, slope: Tensor, weights: Tensor) -> dict[str, Metric]:
    """Shares of tokens and of gradient, among the tokens with A != 0. All inputs are [N] and detached.

    `slope` is d loss / d logprob before aggregation, `weights` those of the aggregation.

    - policy/clip_fraction, policy/gated_fraction, each also _positive and _negative by the sign of A
    - policy/restricted_fraction_q0 .. _q9: gated or clipped, by tenths of the old probability q
    - policy/gradient_share_positive: share of sum |gradient| that tokens with A > 0 have
    - policy/entropy: mean entropy, if given
    """
    strength = slope.abs()
    state = (strength < 0.999 * batch.advantage.abs() * ratio).long() + (strength == 0)
    tenth = (batch.old_logprob.exp() * 10).long().clamp(0, 9)
    cell = (tenth * 2 + (batch.advantage > 0)) * 3 + state
    count = torch.bincount(cell[batch.advantage != 0], minlength=60).double().view(10, 2, 3)
    negative, positive = count.sum(0)
    metrics: dict[str, Metric] = {}
    for suffix, part in (("", positive + negative), ("_positive", positive), ("_negative", negative)):
        metrics[f"policy/clip_fraction{suffix}"] = share(part[CLIPPED], part.sum())
        metrics[f"policy/gated_fraction{suffix}"] = share(part[GATED], part.sum())
    for index, row in enumerate(count.sum(1)):
        metrics[f"policy/restricted_fraction_q{index}"] = share(row[GATED] + row[CLIPPED], row.sum())
    pull = (weights * strength).double()
    metrics["policy/gradient_share_positive"] = share(pull[batch.advantage > 0].sum(), pull.sum())
    if batch.entropy is not None:
        metrics["policy/entropy"] = batch.entropy.detach()
    return metrics


def share(part: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
    """part / whole (0 of nothing) and its weight in an average over micro-batches."""
    return part / whole.clamp(min=torch.finfo(whole.dtype).tiny), whole
