"""PPO's clipped surrogate (Schulman et al. 2017, arXiv 1707.06347, eq. 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import clipped_surrogate, importance_ratio
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class Ppo(Objective):
    """loss = max(-A r, -A clip(r, 1 - epsilon_low, 1 + epsilon_high)).

    w = r, but 0 where A > 0 and r > 1 + epsilon_high, or A < 0 and r < 1 - epsilon_low. Base of the objectives that
    differ from it in their defaults alone.
    """

    epsilon_low: float = 0.2
    epsilon_high: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.epsilon_low >= 0, "epsilon_low", self.epsilon_low, "must be at least 0")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        ratio, ratio_slope = importance_ratio(batch)
        low, high = 1 - self.epsilon_low, 1 + self.epsilon_high
        loss, slope = clipped_surrogate(batch.advantage, ratio, ratio_slope, low, high)
        return TokenLoss(loss, slope, ratio, {})
