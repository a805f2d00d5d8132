"""Dr.GRPO's centred reward (Liu et al. 2025, arXiv 2503.20783, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maspo_rl.advantages.base import Advantage, group_statistics
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class DrGrpo(Advantage):
    """A = R - mean within the group, without the division by the std that favours easy and hard prompts; R in a group
    of one."""

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        group = group_statistics(reward, batch.group)
        return torch.where(group.size == 1, reward, reward - group.mean)
