"""What may be done to the advantages of any objective, token by token, before its loss."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maspo_rl.objectives.base import entropy_of
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True)
class EntropyAdvantage:
    """A' = A + min(alpha sg[H], |A| / kappa): "Reasoning with Exploration" (arXiv 2506.14758, eq. 5 and 6).

    H[N] is the entropy of the live policy's full softmax. With kappa > 1 no sign changes.
    """

    alpha: float
    kappa: float

    def __post_init__(self) -> None:
        require(self.alpha >= 0, "entropy_advantage.alpha", self.alpha, "must be at least 0")
        require(self.kappa > 1, "entropy_advantage.kappa", self.kappa, "must be above 1")

    def __call__(self, batch: TokenBatch) -> Tensor:
        """The new advantages [N]."""
        bonus = torch.minimum(self.alpha * entropy_of(batch).detach(), batch.advantage.abs() / self.kappa)
        return batch.advantage + bonus


@dataclass(frozen=True)
class AdvantageReweighting:
    """A' = (alpha q + 1 - alpha) A: damps tokens that were improbable (arXiv 2505.12929, eq. 7)."""

    alpha: float

    def __post_init__(self) -> None:
        require(0 <= self.alpha <= 1, "advantage_reweighting.alpha", self.alpha, "must be in [0, 1]")

    def __call__(self, batch: TokenBatch) -> Tensor:
        """The new advantages [N]."""
        return (self.alpha * batch.old_logprob.exp() + (1 - self.alpha)) * batch.advantage


@dataclass(frozen=True)
class Selection:
    """The tokens of one of Lopti's passes (arXiv 2505.12929, section 4.2): q < threshold, or the others.

    The tokens left out have no advantage and no penalty but count in every denominator, as in the authors' code.
    """

    threshold: float
    low: bool

    def __post_init__(self) -> None:
        require(0 < self.threshold < 1, "lopti.threshold", self.threshold, "must be in (0, 1), or null")

    def __call__(self, batch: TokenBatch) -> Tensor:
        """True for the tokens of this pass, [N]."""
        return (batch.old_logprob.exp() < self.threshold) == self.low
