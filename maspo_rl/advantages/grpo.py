"""GRPO's group-standardised reward (Shao et al. 2024, arXiv 2402.03300, section 4.1.2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maspo_rl.advantages.base import Advantage, group_statistics
from maspo_rl.registry import require
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class Grpo(Advantage):
    """A = (R - mean) / (std + epsilon) within the group; 0 where all rewards are equal; R in a group of one (as verl).

    `unbiased` divides the variance by n - 1 (verl, TRL: what published runs used), otherwise by n.
    """

    unbiased: bool = True
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        require(self.epsilon > 0, "epsilon", self.epsilon, "must be above 0")

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        group = group_statistics(reward, batch.group)
        standardised = (reward - group.mean) / (group.std(self.unbiased) + self.epsilon)
        return torch.where(group.size == 1, reward, standardised)
