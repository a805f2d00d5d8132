"""ReMax: the greedy response's reward as baseline (Li et al. 2023, arXiv 2310.10505, eq. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from maspo_rl.advantages.base import Advantage
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class Remax(Advantage):
    """A = R - R of the greedy response to the same prompt. Raises ValueError if the batch has no greedy rewards."""

    needs_group: ClassVar[bool] = False
    needs_greedy: ClassVar[bool] = True

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        if batch.greedy_reward is None:
            raise ValueError("remax needs greedy_reward in its batch: sample a greedy response to each prompt")
        return reward - batch.greedy_reward.to(reward)[batch.group]
