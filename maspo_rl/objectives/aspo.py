"""ASPO: the ratio of positive tokens inverted (Wang et al. 2025, arXiv 2510.06062, eq. 9 to 12; code Archer2.0)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from maspo_rl.objectives.base import Objective, TokenLoss, entropy_of
from maspo_rl.objectives.ratio import LOG_RATIO_BOUND, indicator, power_of_e
from maspo_rl.objectives.statistics import sequence_quantile
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch


@dataclass(frozen=True, kw_only=True)
class Aspo(Objective):
    """With u = 1/r for A > 0 and u = r for A < 0:

    w = u; 0 where clipped: A > 0 and r > 1 + epsilon, or A < 0 and r < 1 - epsilon; soft_clip where u > soft_clip
    loss = -A max(u, bound of u), or -A soft_clip log pi where u > soft_clip (the gradient is kept)

    Values are not comparable between the two branches. `epsilon_high_entropy` gives the tokens of highest entropy in
    each response, from the quantile `entropy_quantile` on, a range of their own: 0.4 in the authors' code, off in the
    paper. soft_clip 3 is the code's; the paper gives no number.
    """

    epsilon: float = 0.2
    soft_clip: float = 3.0
    epsilon_high_entropy: float | None = None
    entropy_quantile: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.epsilon < 1, "epsilon", self.epsilon, "must be in [0, 1)")
        require(self.soft_clip > 1, "soft_clip", self.soft_clip, "must be above 1")
        require(0 < self.entropy_quantile < 1, "entropy_quantile", self.entropy_quantile, "must be in (0, 1)")
        wide = self.epsilon_high_entropy
        require(wide is None or 0 <= wide < 1, "epsilon_high_entropy", wide, "must be in [0, 1), or null")

    @property
    def needs_entropy(self) -> bool:
        """Only for two clip ranges."""
        return self.epsilon_high_entropy is not None

    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        log_ratio = (batch.logprob - batch.old_logprob).clamp_(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
        inverted = power_of_e(batch.advantage.sign().mul_(log_ratio), -1.0)
        epsilon = self._epsilon(batch)
        bound = indicator(torch.gt, batch.advantage, 0.0)
        bound.mul_(1 / (1 + epsilon) - (1 - epsilon)).add_(1 - epsilon)
        soft = indicator(torch.gt, inverted, self.soft_clip)
        slope = (
            indicator(torch.ge, inverted, bound).mul_(inverted).clamp_(max=self.soft_clip).mul_(batch.advantage).neg_()
        )
        loss = torch.maximum(inverted, bound, out=inverted).mul_(batch.advantage).neg_()
        loss.lerp_((batch.logprob * -self.soft_clip).mul_(batch.advantage), soft)
        return TokenLoss(loss, slope, power_of_e(log_ratio, in_place=True), {})

    def _epsilon(self, batch: TokenBatch) -> Tensor | float:
        if self.epsilon_high_entropy is None:
            return self.epsilon
        entropy = entropy_of(batch).detach()
        threshold = sequence_quantile(entropy, batch, self.entropy_quantile)
        return indicator(torch.ge, entropy, threshold) * (self.epsilon_high_entropy - self.epsilon) + self.epsilon
