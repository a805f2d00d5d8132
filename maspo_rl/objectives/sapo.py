"""SAPO: a soft gate on both sides of r = 1 (Gao et al. 2025, arXiv 2511.20347, eq. 5 to 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import importance_ratio, indicator
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class Sapo(Objective):
    """loss = -A (4 / tau) p with p = sigmoid(tau (r - 1)) and tau = tau_positive for A > 0, else tau_negative.

    The gate is differentiated: w = 4 p (1 - p) r, which is 1 at r = 1. At r = 1 the loss is -2 A / tau.
    """

    tau_positive: float = 1.0
    tau_negative: float = 1.05

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.tau_positive > 0, "tau_positive", self.tau_positive, "must be above 0")
        require(self.tau_negative > 0, "tau_negative", self.tau_negative, "must be above 0")

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        ratio, ratio_slope = importance_ratio(batch)
        tau = indicator(torch.gt, batch.advantage, 0.0)
        tau.mul_(self.tau_positive - self.tau_negative).add_(self.tau_negative)
        gate = (ratio - 1).mul_(tau).sigmoid_()
        pull = (-4 * batch.advantage).mul_(gate)
        loss = pull / tau
        slope = ratio_slope.mul_(pull).mul_(gate.neg_().add_(1))
        return TokenLoss(loss, slope, ratio, {})
