"""GRPO (DeepSeekMath, Shao et al. 2024, arXiv 2402.03300, eq. 3)."""

from __future__ import annotations

from dataclasses import dataclass

from maspo_rl.objectives.ppo import Ppo


@dataclass(frozen=True, kw_only=True)
class Grpo(Ppo):
    """loss = max(-A r, -A clip(r, 1 - epsilon_low, 1 + epsilon_high)): PPO's, with group advantages, averaged over each
    response and then over responses. The paper names no epsilon; 0.2 is verl's default."""
