"""GMPO: the geometric mean of clipped ratios (Zhao et al. 2025, arXiv 2507.20673, eq. 4; code callsys/GMPO)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import LOG_RATIO_BOUND
from maspo_rl.objectives.statistics import sequence_mean, sequence_starts
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class Gmpo(Objective):
    """loss = -A exp(mean of l over the sequence), l = min(log r, epsilon_high) for A > 0, max(log r, -epsilon_low) for
    A < 0: the range is (e^-0.4, e^0.4), in logs. The same number on each token of a sequence.

    Each unclipped token moves the sequence's loss by w = exp(mean l) / (tokens of the sequence), a clipped one by 0.
    """

    per_sequence: ClassVar[bool] = True

    epsilon_low: float = 0.4
    epsilon_high: float = 0.4

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.epsilon_low >= 0, "epsilon_low", self.epsilon_low, "must be at least 0")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        sign = batch.advantage.sign()
        log_ratio = (batch.logprob - batch.old_logprob).mul_(sign)  # clipped from above alone
        middle, half = (self.epsilon_high - self.epsilon_low) / 2, (self.epsilon_high + self.epsilon_low) / 2
        clipped = log_ratio.clamp(max=half) if middle == 0 else torch.minimum(log_ratio, sign * middle + half)
        live = log_ratio.eq_(clipped).mul_(sign)
        clipped.mul_(sign)
        length = sequence_starts(batch).diff()
        mean = sequence_mean(clipped, length)
        bounded = mean.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
        inside = mean.eq_(bounded)
        of_sequence = bounded.exp_()
        pull = sequence_mean(batch.advantage, length).neg_().mul_(of_sequence).mul_(inside)
        ratio = of_sequence.index_select(0, batch.sequence)
        # sign twice: a token with A = 0 moves nothing
        slope = live.mul_(sign).mul_(pull.index_select(0, batch.sequence))
        loss = torch.mul(batch.advantage, ratio, out=clipped).neg_()
        return TokenLoss(loss, slope, ratio, {})
