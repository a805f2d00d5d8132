"""GPPO: clipping that keeps the gradient (Klear-Reasoner, Su et al. 2025, arXiv 2508.07629, eq. 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import bounded_ratio
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class Gppo(Objective):
    """The value of PPO's loss, max(-A r, -A clip(r, 1 - epsilon_low, 1 + epsilon_high)), but a clipped token keeps the
    gradient that it has at its bound: w = 1 - epsilon_low, w = 1 + epsilon_high, or w = r between.

    Epsilons and dual clip as in the authors' script (suu990901/KlearReasoner).
    """

    epsilon_low: float = 0.2
    epsilon_high: float = 0.28
    dual_clip: float | None = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.epsilon_low <= 1, "epsilon_low", self.epsilon_low, "must be in [0, 1]")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        ratio = bounded_ratio(batch)
        negated = -batch.advantage
        clipped = ratio.clamp(1 - self.epsilon_low, 1 + self.epsilon_high).mul_(negated)
        loss = torch.maximum(negated.mul_(ratio), clipped, out=clipped)
        return TokenLoss(loss, loss.clone(), ratio, {})
