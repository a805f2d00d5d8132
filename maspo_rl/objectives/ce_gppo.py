"""CE-GPPO: the gradient of clipped tokens, scaled (Su et al. 2025, arXiv 2509.20712, eq. 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import bounded_ratio, indicator
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class CeGppo(Objective):
    """loss = -A w r / sg[r] with w = beta_low (1 - epsilon_low) for A < 0 and r below that bound,
    w = beta_high (1 + epsilon_high) for A > 0 and r above it, w = r between.

    beta 0 gives PPO's gradients, 1 GPPO's. beta_low (the paper's beta_1) is 0.5 for 1.5B, 0.75 for 7B; beta_high is
    beta_2. The paper's section 3.2 swaps the two in its prose. Dual clip as in the authors' scripts.
    """

    epsilon_low: float = 0.2
    epsilon_high: float = 0.2
    beta_low: float = 0.5
    beta_high: float = 1.0
    dual_clip: float | None = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.epsilon_low <= 1, "epsilon_low", self.epsilon_low, "must be in [0, 1]")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")
        require(self.beta_low >= 0, "beta_low", self.beta_low, "must be at least 0")
        require(self.beta_high >= 0, "beta_high", self.beta_high, "must be at least 0")

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        ratio = bounded_ratio(batch)
        loss = (batch.advantage * ratio).neg_()
        clipped = ratio.clamp(1 - self.epsilon_low, 1 + self.epsilon_high).mul_(batch.advantage).neg_()
        outside = indicator(torch.gt, clipped, loss)
        middle, half = (self.beta_high + self.beta_low) / 2, (self.beta_high - self.beta_low) / 2
        beta = batch.advantage.sign().mul_(half).add_(middle)
        loss.lerp_(clipped.mul_(beta), outside)
        return TokenLoss(loss, loss.clone(), ratio, {})
