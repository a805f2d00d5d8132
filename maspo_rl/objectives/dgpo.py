"""DGPO: polynomial decay outside the clip range (Fu et al. 2026, arXiv 2603.14389)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import LOG_RATIO_BOUND, indicator, power_of_e
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class Dgpo(Objective):
    """loss = -A w (its weight is detached, so the slope is the same), continuous at both bounds:

    A < 0 and r < 1 - epsilon_low: w = r^(n + 1) / (1 - epsilon_low)^n
    A > 0 and r > 1 + epsilon_high: w = (1 + epsilon_high)^(1/m) r^(1 - 1/m)
    otherwise w = r

    The authors: n = 1, m = 2; n = 2 for 1.5B (VenomRose-Juri/DGPO-RL). A < 0 and r > 1 is unbounded: see `dual_clip`.
    """

    epsilon_low: float = 0.2
    epsilon_high: float = 0.2
    n: float = 1.0
    m: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.epsilon_low < 1, "epsilon_low", self.epsilon_low, "must be in [0, 1)")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")
        require(self.n >= 0, "n", self.n, "must be at least 0")
        require(self.m >= 1, "m", self.m, "must be at least 1")

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        log_ratio = batch.logprob - batch.old_logprob
        bounded = log_ratio.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
        below = (bounded - math.log1p(-self.epsilon_low)).clamp_(max=0).mul_(self.n)
        below.mul_(indicator(torch.lt, batch.advantage, 0.0))
        above = (bounded - math.log1p(self.epsilon_high)).clamp_(min=0).mul_(-1 / self.m)
        above.mul_(indicator(torch.gt, batch.advantage, 0.0))
        surrogate = power_of_e(below.add_(above).add_(bounded), in_place=True)
        loss = surrogate.mul_(batch.advantage).neg_()
        slope = log_ratio.eq_(bounded).mul_(loss)
        return TokenLoss(loss, slope, power_of_e(bounded, in_place=True), {})
