"""Clip-Cov: no gradient for a few random tokens of high covariance (Cui et al. 2025, arXiv 2505.22617)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from maspo_rl.objectives.base import Objective, TokenLoss, constant
from maspo_rl.objectives.covariance import center, covariance
from maspo_rl.objectives.ratio import clipped_surrogate, importance_ratio
from maspo_rl.objectives.statistics import kth_smallest, sequence_keys, sequence_starts, token_lot
from maspo_rl.registry import require
from maspo_rl.types import Reduce, TokenBatch


@dataclass(frozen=True, slots=True)
class Drawn:
    """Of an optimiser step: candidates whose lot is at most `threshold` lose their gradient. Those of this rank: the
    places within their sequence, by its key."""

    threshold: float
    places: dict[int, list[int]] = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class ClipCov(Objective):
    """PPO's clipped loss; a few tokens, drawn among the unclipped ones with covariance_low < covariance <
    covariance_high, get loss 0 and gradient 0: the share `fraction` of the step's tokens, at least one; eq. 9 to 11.

    The paper's formula has no clip on the other tokens, verl's code has (its 7B script widens both epsilons to 1).
    The lot of a token is a hash of its sequence and place (`token_lot`): random, but the same for every split.
    """

    observes_live: ClassVar[bool] = True

    fraction: float = 2e-4
    covariance_low: float = 1.0
    covariance_high: float = 5.0
    epsilon_low: float = 0.2
    epsilon_high: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.fraction <= 1, "fraction", self.fraction, "must be in (0, 1]")
        above = self.covariance_high > self.covariance_low
        require(above, "covariance_high", self.covariance_high, "must be above covariance_low")
        require(self.epsilon_low >= 0, "epsilon_low", self.epsilon_low, "must be at least 0")
        require(self.epsilon_high >= 0, "epsilon_high", self.epsilon_high, "must be at least 0")

    def observe(self, batch: TokenBatch, reduce: Reduce) -> Drawn:
        _, slope, _ = self._clipped(batch)
        values = covariance(batch, center(batch, reduce))
        inside = (values > self.covariance_low) & (values < self.covariance_high) & (slope != 0)
        candidates = inside.nonzero().squeeze(1)
        lots = token_lot(batch, candidates)
        count = max(int(batch.totals.tokens * self.fraction), 1)
        threshold = float(kth_smallest(lots, count, reduce))
        drawn = candidates[lots <= threshold]
        rows, starts = batch.sequence[drawn], sequence_starts(batch)
        places: dict[int, list[int]] = defaultdict(list)
        keys = sequence_keys(batch, starts)[rows].tolist()
        for key, place in zip(keys, (drawn - starts[rows]).tolist(), strict=True):
            places[key].append(place)
        return Drawn(threshold, dict(places))

    def surrogate(self, batch: TokenBatch, step: Drawn) -> TokenLoss:
        loss, slope, ratio = self._clipped(batch)
        starts = sequence_starts(batch)
        found = zip(starts.tolist(), sequence_keys(batch, starts).tolist(), strict=False)
        rows = [start + place for start, key in found for place in step.places.get(key, ())]
        drawn = torch.tensor(rows, dtype=torch.int64, device=starts.device)
        loss.index_fill_(0, drawn, 0.0)
        slope.index_fill_(0, drawn, 0.0)
        share = len(drawn) / max(len(loss), 1)
        return TokenLoss(loss, slope, ratio, {"policy/covariance_selected": constant(share, loss)})

    def _clipped(self, batch: TokenBatch) -> tuple[Tensor, Tensor, Tensor]:
        ratio, ratio_slope = importance_ratio(batch)
        low, high = 1 - self.epsilon_low, 1 + self.epsilon_high
        return *clipped_surrogate(batch.advantage, ratio, ratio_slope, low, high), ratio
