"""RLOO: the other responses of the group as baseline (Ahmadian et al. 2024, arXiv 2402.14740, eq. 8)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maspo_rl.advantages.base import Advantage, group_statistics
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class Rloo(Advantage):
    """A_i = R_i - mean of the others' R = G / (G - 1) (R_i - mean); R in a group of one."""

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        group = group_statistics(reward, batch.group)
        left_out = group.size / (group.size - 1).clamp(min=1) * (reward - group.mean)
        return torch.where(group.size == 1, reward, left_out)
