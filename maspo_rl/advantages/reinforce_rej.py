"""Reinforce-Rej: the raw reward, uniform groups left out (Xiong et al. 2025, arXiv 2504.11343, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maspo_rl.advantages.base import Advantage, group_statistics
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class ReinforceRej(Advantage):
    """A = R without a baseline; 0 where all rewards of the group are equal, that is all right or all wrong.

    The paper's rewards are 1 and -1. With 1 and 0 it learns from right answers only: set `verifier.wrong_reward`.
    """

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        return torch.where(group_statistics(reward, batch.group).uniform, 0.0, reward)
