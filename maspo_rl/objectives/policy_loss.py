"""An objective with everything an algorithm puts around it: one object that the learner drives.

policy = build_policy_loss(config.algorithm)            # of compose.py
for part in policy.passes:                              # one, except for Lopti
    for each optimiser step:
        step = part.observe(step_batch, reduce) if part.needs_step else None
        for each micro-batch:
            result = part(batch, step)
            result.loss.backward()                      # gradients add up to those of the whole step
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from maspo_rl.objectives.aggregation import token_weights
from maspo_rl.objectives.base import Metric, Objective, constant, entropy_of
from maspo_rl.objectives.diagnostics import diagnose
from maspo_rl.objectives.penalties import AdaptiveEntropy, EntropyBonus, Kl
from maspo_rl.objectives.reshaping import Selection
from maspo_rl.types import Reduce, TokenBatch


@dataclass(frozen=True, slots=True)
class MicroBatchLoss:
    """`loss`: a scalar to call backward on, this micro-batch's part of the step's loss. `metrics`: see base.Metric."""

    loss: Tensor
    metrics: dict[str, Metric]


@dataclass(frozen=True, slots=True)
class StepStatistics:
    """What `observe` found out about an optimiser step: the objective's part, and the entropy bonus's coefficient."""

    objective: Any
    entropy_coefficient: float


@dataclass(frozen=True, kw_only=True)
class PolicyLoss:
    """An objective, transforms of its advantages, penalties and aggregation. Made by `build_policy_loss`.

    What the learner must do for it: `needs_entropy` and `needs_reference`: give `entropy` (with gradient) and
    `reference_logprob` in each TokenBatch; `proxy_kappa`, where set: give `proxy_logprob` under that min-p filter;
    `needs_step`: call `observe` before the first micro-batch of each optimiser step; `observes_live`: give it live
    log-probabilities and entropies (otherwise `logprob` may repeat `old_logprob`).
    """

    objective: Objective
    mode: str
    constant: float | None
    transforms: tuple[Callable[[TokenBatch], Tensor], ...]
    kl: Kl | None
    entropy_bonus: EntropyBonus | AdaptiveEntropy | None
    needs_entropy: bool
    needs_reference: bool
    proxy_kappa: float | None
    needs_step: bool
    observes_live: bool
    selections: tuple[Selection, ...]
    selection: Selection | None = None

    @property
    def passes(self) -> tuple[PolicyLoss, ...]:
        """The losses to go over the rollout batch with, one after the other; they share their state."""
        return tuple(replace(self, selection=selection) for selection in self.selections) or (self,)

    @torch.no_grad()
    def observe(self, batch: TokenBatch, reduce: Reduce) -> StepStatistics:
        """Statistics of an optimiser step; `batch` holds all this rank's tokens of it, without gradient."""
        coefficient = self.entropy_bonus.observe(batch, reduce) if self.entropy_bonus else 0.0
        observed = self.objective.observe(self._reshape(batch), reduce) if self.objective.needs_step else None
        return StepStatistics(observed, coefficient)

    def __call__(self, batch: TokenBatch, step: StepStatistics | None = None) -> MicroBatchLoss:
        """Loss and metrics of a micro-batch. `step` is what `observe` returned for this optimiser step."""
        if step is None and self.needs_step:
            raise RuntimeError("the statistics of this optimiser step are missing: call observe first")
        reshaped = self._reshape(batch)
        result = self.objective.token_loss(reshaped, step.objective if step else None)
        slope = self._select(batch, result.slope)
        weights = token_weights(batch.sequence, batch.totals, self.mode, self.constant, slope.dtype)
        loss = (weights * self._select(batch, result.loss)).sum()
        metrics = result.metrics | diagnose(reshaped, result.ratio, slope, weights)
        if self.entropy_bonus is not None:
            coefficient = step.entropy_coefficient if step else self.entropy_bonus.coefficient
            loss = loss - (weights * self._select(batch, coefficient * entropy_of(batch))).sum()
            metrics["policy/entropy_coefficient"] = constant(coefficient, slope)
        if self.kl is not None:
            kl = self.kl.estimate(batch)
            loss = loss + (weights * self._select(batch, self.kl.coefficient * kl)).sum()
            metrics["policy/reference_kl"] = kl.detach()
        return MicroBatchLoss(loss, metrics)

    def state_dict(self) -> dict[str, Any]:
        """State across steps, for the checkpoint; shared by all passes."""
        entropy_bonus = self.entropy_bonus.state_dict() if self.entropy_bonus else {}
        return {"objective": self.objective.state_dict(), "entropy_bonus": entropy_bonus}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.objective.load_state_dict(state["objective"])
        if self.entropy_bonus is not None:
            self.entropy_bonus.load_state_dict(state["entropy_bonus"])

    def _reshape(self, batch: TokenBatch) -> TokenBatch:
        for transform in self.transforms:
            batch = replace(batch, advantage=transform(batch))
        return replace(batch, advantage=self._select(batch, batch.advantage))

    def _select(self, batch: TokenBatch, values: Tensor) -> Tensor:
        return values if self.selection is None else torch.where(self.selection(batch), values, 0.0)
