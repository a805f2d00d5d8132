"""REINFORCE++ with the group's mean as baseline (Hu et al. 2025, arXiv 2501.03262, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from maspo_rl.advantages.base import Advantage, group_statistics, whiten
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class ReinforcePlusPlusBaseline(Advantage):
    """R - mean within the group, then (x - mean) / sqrt(variance + 1e-8) over all tokens of the batch. `unbiased`:
    variance over n - 1 tokens (verl), otherwise n (OpenRLHF)."""

    unbiased: bool = True

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        return whiten(reward - group_statistics(reward, batch.group).mean, batch.length, self.unbiased)
