"""GSPO: one ratio a sequence (Zheng et al. 2025, arXiv 2507.18071, eq. 5, 7 and 12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import clipped_surrogate, indicator
from maspo_rl.objectives.statistics import sequence_mean, sequence_starts
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch

LOG_BOUND = 10.0
"""verl clamps log s at most to 10; beyond it a sequence has no gradient."""


@dataclass(frozen=True, kw_only=True)
class Gspo(Objective):
    """loss = max(-A s, -A clip(s, 1 - epsilon_low, 1 + epsilon_high)) with s = exp(mean of log r over the sequence).

    The token form s_t = sg[s] pi / sg[pi]: each token's gradient goes to itself alone, w = s or 0. Made for
    seq-mean-token-mean.
    """

    epsilon_low: float = 3e-4
    epsilon_high: float = 4e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.epsilon_low >= 0, "epsilon_low", self.epsilon_low, "must be at least 0")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        log_ratio = sequence_mean(batch.logprob - batch.old_logprob, sequence_starts(batch).diff())
        inside = indicator(torch.lt, log_ratio, LOG_BOUND)
        of_sequence = log_ratio.clamp_(max=LOG_BOUND).exp_()
        ratio = of_sequence.index_select(0, batch.sequence)
        ratio_slope = inside.mul_(of_sequence).index_select(0, batch.sequence)
        low, high = 1 - self.epsilon_low, 1 + self.epsilon_high
        loss, slope = clipped_surrogate(batch.advantage, ratio, ratio_slope, low, high)
        return TokenLoss(loss, slope, ratio, {})
