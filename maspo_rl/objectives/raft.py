"""RAFT, and plain REINFORCE: the log-likelihood of responses, weighted (arXiv 2304.06767; arXiv 2504.11343, eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.objectives.ratio import bounded_ratio
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class Raft(Objective):
    """loss = -A log pi, so w = 1, whatever the ratio. With RAFT's advantage (1 for the best responses of a group, else
    0) it is RAFT, with any other REINFORCE. Values are not comparable with those of ratio losses."""

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        ratio = bounded_ratio(batch)
        slope = -batch.advantage
        return TokenLoss(slope * batch.logprob, slope, ratio, {})
