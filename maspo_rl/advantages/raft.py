"""RAFT's choice of responses (Dong et al. 2023, arXiv 2304.06767; Xiong et al. 2025, arXiv 2504.11343, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from maspo_rl.advantages.base import Advantage, group_statistics
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class Raft(Advantage):
    """select="positive": A = max(R, 0), the authors' code (RLHFlow/Minimal-RL); select="best": A = 1 for each response
    with the best reward of its group, else 0, the paper's words: it also learns from the least bad of wrong answers,
    and where all are equally wrong from all of them."""

    needs_group: ClassVar[bool] = False

    select: Literal["positive", "best"] = "positive"

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        if self.select == "positive":
            return reward.clamp(min=0)
        return (reward == group_statistics(reward, batch.group).best).to(reward)
