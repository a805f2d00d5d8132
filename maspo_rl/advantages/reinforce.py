"""Plain REINFORCE: the raw reward (Williams 1992; the "Reinforce" of arXiv 2504.11343)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from maspo_rl.advantages.base import Advantage
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class Reinforce(Advantage):
    """A = R."""

    needs_group: ClassVar[bool] = False

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        return reward
