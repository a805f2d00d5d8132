"""ReMax: the greedy response's reward as baseline (Li et al. 2023, arXiv 2310.10505, eq. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from maspo_rl.advantages.base import Advantage
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, slots=True)
class GreedyRewardBatch(RewardBatch):
    """Rewards with `greedy_reward`, one for each group: that of a response sampled at temperature 0."""

    greedy_reward: Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class Remax(Advantage):
    """A = R - R of the greedy response to the same prompt. Raises ValueError if the batch has no greedy rewards."""

    needs_group: ClassVar[bool] = False
    needs_greedy: ClassVar[bool] = True
    unsupported: ClassVar[str | None] = "a step samples no greedy response beside the group"

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        if not isinstance(batch, GreedyRewardBatch) or batch.greedy_reward is None:
            raise ValueError("remax needs a GreedyRewardBatch: sample a greedy response to each prompt")
        return reward - batch.greedy_reward.to(reward)[batch.group]
