"""PPO's clipped surrogate (Schulman et al. 2017, arXiv 1707.06347, eq. 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from maspo_rl.objectives.base import Objective, TokenLoss, token_ratio
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
        ratio = token_ratio(batch)
        clipped = ratio.clamp(1 - self.epsilon_low, 1 + self.epsilon_high)
        loss = torch.maximum(-batch.advantage * ratio, -batch.advantage * clipped)
        return TokenLoss(loss, ratio.detach(), {})
