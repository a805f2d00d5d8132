"""Reinforce-Rej (Xiong et al. 2025, arXiv 2504.11343, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

from maspo_rl.objectives.ppo import Ppo


@dataclass(frozen=True, kw_only=True)
class ReinforceRej(Ppo):
    """loss = max(-A r, -A clip(r, 1 - epsilon_low, 1 + epsilon_high)) with the raw reward as A, prompts whose responses
    are all right or all wrong left out; clip 0.2 and dual clip 3 as in the authors' code (RLHFlow/Minimal-RL)."""

    dual_clip: float | None = 3.0
