"""Lp-Reg: improbable but sensible tokens are kept from vanishing (Huang et al. 2025, arXiv 2510.03222)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from maspo_rl.objectives.base import Objective, TokenLoss, constant
from maspo_rl.objectives.ratio import LOG_RATIO_BOUND, clipped_surrogate, importance_ratio
from maspo_rl.objectives.statistics import kth_smallest
from maspo_rl.registry import require
from maspo_rl.types import Reduce, TokenBatch


@dataclass(frozen=True, kw_only=True)
class LpReg(Objective):
    """loss = -A r + beta k3 on the penalised tokens, k3 = exp(t - log pi) - (t - log pi) - 1, t = sg[proxy_logprob];
    max(-A r, -A clip(r, 1 - epsilon_low, 1 + epsilon_high)) on the others, with the bounds 0 and 10.

    Penalised: A < 0, the token among the least probable share `fraction` of the step's tokens with A < 0 (the authors'
    code, CarlanLark/Lp-Reg-dev; `quantile_of="all"`: of all tokens, the paper), and log pi < t. As in their code, k3 of
    the sampled token stands for the paper's KL over the vocabulary. fraction 0.01 for 14B, 0.005 for 32B.
    `proxy_kappa` is the min-p filter that makes `proxy_logprob`: of the live policy, at each update.
    """

    observes_live: ClassVar[bool] = True

    fraction: float = 0.01
    beta: float = 1.0
    proxy_kappa: float = 0.02
    quantile_of: Literal["negative", "all"] = "negative"
    epsilon_low: float = 1.0
    epsilon_high: float = 9.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.fraction <= 1, "fraction", self.fraction, "must be in (0, 1]")
        require(self.beta >= 0, "beta", self.beta, "must be at least 0")
        require(0 < self.proxy_kappa < 1, "proxy_kappa", self.proxy_kappa, "must be in (0, 1)")
        require(self.epsilon_low >= 0, "epsilon_low", self.epsilon_low, "must be at least 0")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")

    @property
    def needs_proxy(self) -> float:
        return self.proxy_kappa

    def observe(self, batch: TokenBatch, reduce: Reduce) -> float:
        """The log-probability at the quantile; -infinity where it would take a single token."""
        values = batch.logprob if self.quantile_of == "all" else batch.logprob[batch.advantage < 0]
        among = int(reduce(torch.tensor(len(values), device=values.device), "sum"))
        count = int(among * self.fraction)
        return float(kth_smallest(values, count, reduce)) if count > 1 else -float("inf")

    def surrogate(self, batch: TokenBatch, step: float) -> TokenLoss:
        if batch.proxy_logprob is None:
            raise ValueError("lp_reg needs proxy_logprob in its batch")
        ratio, ratio_slope = importance_ratio(batch)
        low, high = 1 - self.epsilon_low, 1 + self.epsilon_high
        loss, slope = clipped_surrogate(batch.advantage, ratio, ratio_slope, low, high)
        chosen = (batch.logprob <= step).nonzero().squeeze(1)
        advantage, logprob, proxy = (
            values.index_select(0, chosen) for values in (batch.advantage, batch.logprob, batch.proxy_logprob)
        )
        # 0, and with it the penalty, where the token is not penalised
        gap = (proxy - logprob).clamp_(0, LOG_RATIO_BOUND).mul_(advantage < 0)
        if low > 0:  # penalised tokens are not clipped; a bound of 0 clips none of them
            released, pull = chosen[gap > 0], -advantage[gap > 0]
            loss[released] = pull * ratio[released]
            slope[released] = pull * ratio_slope[released]
        excess = gap.expm1()
        loss.index_add_(0, chosen, excess - gap, alpha=self.beta)
        slope.index_add_(0, chosen, excess, alpha=-self.beta)
        share = int(gap.count_nonzero()) / max(len(loss), 1)
        return TokenLoss(loss, slope, ratio, {"policy/regularised": constant(share, loss)})
