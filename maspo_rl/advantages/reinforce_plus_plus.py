"""REINFORCE++: the reward, standardised over the batch (Hu et al. 2025, arXiv 2501.03262, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from maspo_rl.advantages.base import Advantage, whiten
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class ReinforcePlusPlus(Advantage):
    """A = (R - mean) / sqrt(variance + 1e-8) over all tokens of the batch, each with its response's reward (the return
    with discount 1). `unbiased`: variance over n - 1 tokens (verl), otherwise n (OpenRLHF).

    The paper's KL in the reward is a KL in the loss here: `algorithm.kl` with estimator k2, which has its gradient.
    """

    needs_group: ClassVar[bool] = False

    unbiased: bool = True

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        return whiten(reward, batch.length, self.unbiased)
