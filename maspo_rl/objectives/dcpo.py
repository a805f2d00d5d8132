"""DCPO's dynamic adaptive clipping, DAC (Yang et al. 2025, arXiv 2509.02333, eq. 5 to 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import importance_ratio, one_sided_clip, power_of_e
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class Dcpo(Objective):
    """loss = max(-A r, -A clip(r, low, high)); the bounds, from |(r - 1) r q| <= epsilon, open for improbable tokens:

    low = 1/2 + 1/2 sqrt(max(1 - 4 epsilon_low / q, 0)), never under 1/2
    high = min(1/2 + 1/2 sqrt(1 + 4 epsilon_high / q), cap)

    For A < 0 the dual clip, by default at the cap too. The authors' script has 0.2 and 0.28 in place of the paper's
    0.16 and 0.2.
    """

    epsilon_low: float = 0.16
    epsilon_high: float = 0.2
    cap: float = 10.0
    dual_clip: float | None = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.epsilon_low >= 0, "epsilon_low", self.epsilon_low, "must be at least 0")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")
        require(self.cap > 1, "cap", self.cap, "must be above 1")

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        ratio, ratio_slope = importance_ratio(batch)
        # epsilon_high where A > 0, -epsilon_low where A < 0: one root gives the bound that can bind.
        middle, half = (self.epsilon_high - self.epsilon_low) / 2, (self.epsilon_high + self.epsilon_low) / 2
        epsilon = batch.advantage.sign().mul_(half).add_(middle)
        bound = power_of_e(batch.old_logprob, -1.0).mul_(epsilon).add_(0.25).clamp_(min=0).sqrt_().add_(0.5)
        loss, slope = one_sided_clip(batch.advantage, ratio, ratio_slope, bound.clamp_(max=self.cap))
        return TokenLoss(loss, slope, ratio, {})
