"""The covariance of advantage and log-probability, token by token (arXiv 2505.22617, eq. 9)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maspo_rl.types import Reduce, TokenBatch


@dataclass(frozen=True, slots=True)
class Center:
    """Means over all tokens of an optimiser step."""

    advantage: float
    logprob: float


def center(batch: TokenBatch, reduce: Reduce) -> Center:
    """The means; `batch` holds this rank's tokens of the step."""
    sums = torch.stack([batch.advantage.double().sum(), batch.logprob.double().sum()])
    advantage, logprob = (reduce(sums, "sum") / max(batch.totals.tokens, 1)).tolist()
    return Center(advantage, logprob)


def covariance(batch: TokenBatch, means: Center) -> Tensor:
    """(A - mean A)(logprob - mean logprob), [N]."""
    return (batch.advantage - means.advantage).mul_(batch.logprob - means.logprob)
