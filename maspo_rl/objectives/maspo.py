"""MASPO: soft gates shaped by probability mass and advantage (Fu et al. 2026, arXiv 2602.17550)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import clipped_surrogate, importance_ratio, power_of_e
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class Maspo(Objective):
    """loss = -A sg[F] r, so w = F r.

    F = exp(-(r-1)^2 / (2 sigma^2)) where A > 0 and r > 1, or A < 0 and r < 1; else 1
    sigma = mass * risk
    mass = sigma_base / q^alpha, clamped to [sigma_base, sigma_high]
    risk = 1 + beta_positive A for A > 0, 1 / (1 - beta_negative A) for A < 0, clamped to [risk_low, risk_high]

    The clamps are those of the released code (FlyTune/MASPO-RL core_algos.py); `clamps=False` is the paper's formula.
    Ablations: `gate="hard"` puts PPO's clip at 1 +- epsilon in the gate's place, `mass=False` sets mass = sigma_base,
    `risk=False` sets risk = 1. The side that is not gated is unbounded (A < 0, r > 1): watch policy/ratio_max;
    `dual_clip` bounds it and is off as in the paper.
    """

    on_policy_twin: ClassVar[str | None] = "grpo"

    alpha: float = 0.3
    sigma_base: float = 1.0
    sigma_high: float = 10.0
    beta_positive: float = 0.03
    beta_negative: float = 0.03
    risk_low: float = 0.1
    risk_high: float = 10.0
    clamps: bool = True
    gate: Literal["soft", "hard"] = "soft"
    mass: bool = True
    risk: bool = True
    epsilon_low: float = 0.2
    epsilon_high: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.alpha >= 0, "alpha", self.alpha, "must be at least 0")
        require(self.sigma_base > 0, "sigma_base", self.sigma_base, "must be above 0")
        require(self.sigma_high >= self.sigma_base, "sigma_high", self.sigma_high, "must be at least sigma_base")
        require(self.beta_positive >= 0, "beta_positive", self.beta_positive, "must be at least 0")
        require(self.beta_negative >= 0, "beta_negative", self.beta_negative, "must be at least 0")
        require(0 < self.risk_low <= 1, "risk_low", self.risk_low, "must be in (0, 1]")
        require(self.risk_high >= 1, "risk_high", self.risk_high, "must be at least 1")
        require(self.epsilon_low >= 0, "epsilon_low", self.epsilon_low, "must be at least 0")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        ratio, ratio_slope = importance_ratio(batch)
        if self.gate == "hard":
            low, high = 1 - self.epsilon_low, 1 + self.epsilon_high
            loss, slope = clipped_surrogate(batch.advantage, ratio, ratio_slope, low, high)
            return TokenLoss(loss, slope, ratio, {})
        sign = batch.advantage.sign()
        excess = (ratio - 1).mul_(sign).clamp_(min=0)  # above 0 on the gated side alone
        gated = torch.sign(excess, out=sign)
        if self.mass:
            excess.mul_(self._inverse_mass(batch.old_logprob))
        if self.risk:
            self._divide_by_risk(excess, batch.advantage)
        gate = power_of_e(excess.square_(), -0.5 / self.sigma_base**2, in_place=True)
        pull = (-batch.advantage).mul_(gate)
        return TokenLoss(pull * ratio, ratio_slope.mul_(pull), ratio, {"policy/gate_mean": (gate, gated)})

    def _inverse_mass(self, old_logprob: Tensor) -> Tensor:
        """sigma_base / mass, between sigma_base / sigma_high and 1."""
        inverse = power_of_e(old_logprob, self.alpha)
        return inverse.clamp_(self.sigma_base / self.sigma_high, 1.0) if self.clamps else inverse

    def _divide_by_risk(self, excess: Tensor, advantage: Tensor) -> None:
        one = advantage.new_ones(())
        high, inverse_low = (self.risk_high, 1 / self.risk_low) if self.clamps else (None, None)
        # One of the two factors is 1.
        excess.div_(torch.add(one, advantage, alpha=self.beta_positive).clamp_(1, high))
        excess.mul_(torch.add(one, advantage, alpha=-self.beta_negative).clamp_(1, inverse_low))
