"""BAPO: clip bounds that balance positive and negative tokens (Xi et al. 2025, arXiv 2510.18927)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from maspo_rl.objectives.base import Objective, TokenLoss, constant
from maspo_rl.objectives.ratio import bounded_ratio, clipped_surrogate, importance_ratio
from maspo_rl.registry import require
from maspo_rl.types import Reduce, TokenBatch


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the ratio for one optimiser step, and the balance that they reach."""

    low: float
    high: float
    balance: float


@dataclass(frozen=True, kw_only=True)
class Bapo(Objective):
    """loss = max(-A r, -A clip(r, low, high)); low and high are found anew for each optimiser step (algorithm 1): from
    (low_start, high_start), raise high by high_step up to high_end, then low by low_step up to low_end, until the
    balance of the terms x = q min(A r, A clip(r, low, high)) is at least `target`.

    `balance`: "share" = sum |x+| / sum |x|; "net" = |sum x+| / |sum x|, the literal reading of eq. 8; "code" = what
    the authors' code does (WooooDyy/BAPO): sum |x+| / sum |x-| without the factor q, and low is raised before high.
    Raising low makes negative terms larger, so it never helps the balance: it only prunes gradients of negatives.
    Dual clip 3 as in the authors' code.
    """

    observes_live: ClassVar[bool] = True

    target: float = 0.4
    low_start: float = 0.6
    low_end: float = 0.9
    low_step: float = 0.02
    high_start: float = 1.2
    high_end: float = 3.0
    high_step: float = 0.05
    balance: Literal["share", "net", "code"] = "share"
    dual_clip: float | None = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.target > 0, "target", self.target, "must be above 0")
        require(0 <= self.low_start <= 1, "low_start", self.low_start, "must be in [0, 1]")
        require(self.low_start <= self.low_end <= 1, "low_end", self.low_end, "must be from low_start to 1")
        require(self.high_start >= 1, "high_start", self.high_start, "must be at least 1")
        require(self.high_end >= self.high_start, "high_end", self.high_end, "must be at least high_start")
        require(self.low_step > 0, "low_step", self.low_step, "must be above 0")
        require(self.high_step > 0, "high_step", self.high_step, "must be above 0")

    def observe(self, batch: TokenBatch, reduce: Reduce) -> Bounds:
        lows = _steps(self.low_start, self.low_end, self.low_step)
        highs = _steps(self.high_start, self.high_end, self.high_step)
        ratio = bounded_ratio(batch)
        strength = batch.advantage.abs() if self.balance == "code" else batch.advantage.abs() * batch.old_logprob.exp()
        up, down = batch.advantage > 0, batch.advantage < 0
        positive, _ = _bounded_sums(ratio[up], strength[up], highs)
        _, negative = _bounded_sums(ratio[down], strength[down], lows)
        sums = reduce(torch.cat([positive, negative]), "sum").tolist()
        gains, losses = sums[: len(highs)], sums[len(highs) :]
        path = [(0, high) for high in range(len(highs))] + [(low, len(highs) - 1) for low in range(1, len(lows))]
        if self.balance == "code":
            path = [(low, 0) for low in range(len(lows))] + [(len(lows) - 1, high) for high in range(1, len(highs))]
        for low, high in path:
            balance = self._measure(gains[high], losses[low])
            if balance >= self.target:
                break
        return Bounds(lows[low], highs[high], balance)

    def surrogate(self, batch: TokenBatch, step: Bounds) -> TokenLoss:
        ratio, ratio_slope = importance_ratio(batch)
        loss, slope = clipped_surrogate(batch.advantage, ratio, ratio_slope, step.low, step.high)
        found = {"low": step.low, "high": step.high, "balance": step.balance}
        return TokenLoss(loss, slope, ratio, {f"policy/bapo_{name}": constant(found[name], ratio) for name in found})

    def _measure(self, gain: float, loss: float) -> float:
        whole = {"share": gain + loss, "net": abs(gain - loss), "code": loss + 1e-8}[self.balance]
        return gain / whole if whole > 0 else float("inf")


def _steps(start: float, end: float, step: float) -> list[float]:
    """start, start + step, ... as far as end, which rounding does not exclude."""
    return [start + step * index for index in range(int((end - start) / step + 1e-9) + 1)]


def _bounded_sums(ratio: Tensor, strength: Tensor, bounds: list[float]) -> tuple[Tensor, Tensor]:
    """Sums of strength * min(ratio, bound) and of strength * max(ratio, bound) for each of the ascending bounds."""
    bound = torch.tensor(bounds, dtype=torch.float64, device=ratio.device)
    place = torch.bucketize(ratio.double(), bound)
    weight = strength.double()
    mass = torch.bincount(place, weight, len(bounds) + 1).cumsum(0)
    moment = torch.bincount(place, weight * ratio, len(bounds) + 1).cumsum(0)
    smaller, larger = moment[:-1] + bound * (mass[-1] - mass[:-1]), bound * mass[:-1] + moment[-1] - moment[:-1]
    return smaller, larger
