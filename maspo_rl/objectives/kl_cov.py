"""KL-Cov: a KL penalty on the tokens whose update lowers the entropy most (Cui et al. 2025, arXiv 2505.22617)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from maspo_rl.objectives.base import Objective, TokenLoss, constant
from maspo_rl.objectives.covariance import Center, center, covariance
from maspo_rl.objectives.ratio import importance_ratio
from maspo_rl.objectives.statistics import kth_smallest
from maspo_rl.registry import require
from maspo_rl.types import Reduce, TokenBatch


@dataclass(frozen=True, slots=True)
class Selected:
    """Of an optimiser step: tokens of this covariance or more are penalised."""

    center: Center
    threshold: float


@dataclass(frozen=True, kw_only=True)
class KlCov(Objective):
    """loss = -A r, without any clipping, + coefficient |log r| on the tokens with the largest covariance
    (A - mean A)(logprob - mean logprob): the share `fraction` of the step's tokens, at least one; eq. 10 to 12.

    A penalised token has w = r - coefficient sign(log r) / A. Coefficient 1 is the paper's, 0.1 verl's;
    fraction 2e-4 is the paper's for 32B, 2e-3 for 7B.
    """

    observes_live: ClassVar[bool] = True

    fraction: float = 2e-4
    coefficient: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.fraction <= 1, "fraction", self.fraction, "must be in (0, 1]")
        require(self.coefficient >= 0, "coefficient", self.coefficient, "must be at least 0")

    def observe(self, batch: TokenBatch, reduce: Reduce) -> Selected:
        found = center(batch, reduce)
        count = max(int(batch.totals.tokens * self.fraction), 1)
        return Selected(found, -float(kth_smallest(-covariance(batch, found), count, reduce)))

    def surrogate(self, batch: TokenBatch, step: Selected) -> TokenLoss:
        ratio, ratio_slope = importance_ratio(batch)
        negated = -batch.advantage
        loss, slope = negated * ratio, ratio_slope.mul_(negated)
        selected = (covariance(batch, step.center) >= step.threshold).nonzero().squeeze(1)
        log_ratio = batch.logprob[selected] - batch.old_logprob[selected]
        loss[selected] += self.coefficient * log_ratio.abs()
        slope[selected] += self.coefficient * log_ratio.sign()
        share = len(selected) / max(len(loss), 1)
        return TokenLoss(loss, slope, ratio, {"policy/covariance_selected": constant(share, loss)})
