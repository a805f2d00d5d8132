"""Dr.GRPO (Liu et al. 2025, "Understanding R1-Zero-Like Training", arXiv 2503.20783, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from maspo_rl.objectives.ppo import Ppo


@dataclass(frozen=True, kw_only=True)
class DrGrpo(Ppo):
    """loss = max(-A r, -A clip(r, 1 - epsilon_low, 1 + epsilon_high)): PPO's. What differs from GRPO is around it:
    advantages without std, and token sums over a constant instead of each response's length."""
