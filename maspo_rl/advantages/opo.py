"""OPO: the optimal baseline for on-policy training (Hao et al. 2025, arXiv 2505.23585, eq. 9)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maspo_rl.advantages.base import Advantage, group_statistics, group_sum
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class Opo(Advantage):
    """A = R - sum(length R) / sum(length) within the group; R in a group of one."""

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        group = group_statistics(reward, batch.group)
        length = batch.length.to(reward)
        deviation = group_sum(length * (reward - group.mean), batch.group) / group_sum(length, batch.group).clamp(min=1)
        return torch.where(group.size == 1, reward, reward - group.mean - deviation[batch.group])
