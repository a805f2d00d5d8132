"""Pass@k: only the best response of a group is paid (Chen et al. 2025, arXiv 2503.19595; verl's grpo_passk)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maspo_rl.advantages.base import Advantage, group_statistics
from maspo_rl.registry import require
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class PassK(Advantage):
    """A = (best R - second best R) / (std + epsilon) for the best response of the group, 0 for the others. So a group
    with two right answers teaches nothing. `unbiased`: std over n - 1."""

    unbiased: bool = True
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        require(self.epsilon > 0, "epsilon", self.epsilon, "must be above 0")

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        std = group_statistics(reward, batch.group).std(self.unbiased)
        advantage = torch.zeros_like(reward)
        for index in range(len(batch.prompt_ids)):
            members = (batch.group == index).nonzero().squeeze(1)
            if len(members) > 1:
                (first, second), (best, _) = reward[members].topk(2)
                chosen = members[best]
                advantage[chosen] = (first - second) / (std[chosen] + self.epsilon)
        return advantage
