"""GPG: the centred reward, scaled up for prompts without signal (Chu et al. 2025, arXiv 2504.02546; verl)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maspo_rl.advantages.base import Advantage, group_statistics
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class Gpg(Advantage):
    """A = (R - mean within the group) * (responses of the batch / responses with a reward that is not 0), as verl
    computes it; R in place of the difference in a group of one."""

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        group = group_statistics(reward, batch.group)
        centred = torch.where(group.size == 1, reward, reward - group.mean)
        return centred * len(reward) / max(int(reward.count_nonzero()), 1)
