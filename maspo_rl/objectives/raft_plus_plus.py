"""RAFT++: RAFT with importance sampling and clipping (Xiong et al. 2025, arXiv 2504.11343, eq. 3)."""

from __future__ import annotations

from dataclasses import dataclass

from maspo_rl.objectives.ppo import Ppo


@dataclass(frozen=True, kw_only=True)
class RaftPlusPlus(Ppo):
    """loss = max(-A r, -A clip(r, 1 - epsilon_low, 1 + epsilon_high)) with A = 1 for the best responses of a group and
    0 for the others; clip 0.2 and dual clip 3 as in the authors' code (RLHFlow/Minimal-RL)."""

    dual_clip: float | None = 3.0
