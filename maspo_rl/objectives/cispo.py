"""CISPO (MiniMax-M1, 2025, arXiv 2506.13585, eq. 4 and 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import bounded_ratio
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class Cispo(Objective):
    """loss = -sg[w] A log pi with w = clip(r, 1 - epsilon_low, 1 + epsilon_high): the weight is clipped, so that every
    token keeps a gradient. Values are not comparable with those of ratio losses.

    epsilon_low 10 is no bound at all, as in the paper; the paper does not publish its epsilon_high, 0.2 is verl's.
    """

    epsilon_low: float = 10.0
    epsilon_high: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.epsilon_low >= 0, "epsilon_low", self.epsilon_low, "must be at least 0")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        ratio = bounded_ratio(batch)
        slope = ratio.clamp(1 - self.epsilon_low, 1 + self.epsilon_high).mul_(batch.advantage).neg_()
        return TokenLoss(slope * batch.logprob, slope, ratio, {})
