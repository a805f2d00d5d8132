"""DAPO's clip-higher (Yu et al. 2025, arXiv 2503.14476, eq. 8)."""

from __future__ import annotations

from dataclasses import dataclass

from maspo_rl.objectives.ppo import Ppo


@dataclass(frozen=True, kw_only=True)
class Dapo(Ppo):
    """loss = max(-A r, -A clip(r, 1 - epsilon_low, 1 + epsilon_high)) with a higher upper bound; dual clip 10 as in the
    authors' 32B script."""

    epsilon_low: float = 0.2
    epsilon_high: float = 0.28
    dual_clip: float | None = 10.0
