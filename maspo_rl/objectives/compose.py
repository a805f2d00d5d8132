"""From an algorithm's configuration to the one object that the learner drives; see `policy_loss.PolicyLoss`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

from maspo_rl.objectives import build
from maspo_rl.objectives.aggregation import check_mode
from maspo_rl.objectives.penalties import AdaptiveEntropy, EntropyBonus, Kl
from maspo_rl.objectives.policy_loss import PolicyLoss
from maspo_rl.objectives.reshaping import AdvantageReweighting, EntropyAdvantage, Selection
from maspo_rl.registry import require
from maspo_rl.types import TokenBatch

if TYPE_CHECKING:
    from maspo_rl.config.algorithm import AlgorithmConfig


def build_policy_loss(algorithm: AlgorithmConfig) -> PolicyLoss:
    """The loss that `algorithm` describes. Raises InputError for what it cannot be; needs no model and no device."""
    check_mode(algorithm.aggregation.mode, algorithm.aggregation.constant)
    objective = build(**algorithm.objective)
    transforms: list[Callable[[TokenBatch], Tensor]] = []
    if algorithm.entropy_advantage.alpha != 0:
        transforms.append(EntropyAdvantage(algorithm.entropy_advantage.alpha, algorithm.entropy_advantage.kappa))
    if algorithm.advantage_reweighting.alpha != 0:
        transforms.append(AdvantageReweighting(algorithm.advantage_reweighting.alpha))
    entropy_advantage = algorithm.entropy_advantage.alpha != 0
    entropy_bonus = _entropy_bonus(algorithm)
    kl = Kl(algorithm.kl.coefficient, algorithm.kl.estimator)
    return PolicyLoss(
        objective=objective,
        mode=algorithm.aggregation.mode,
        constant=algorithm.aggregation.constant,
        transforms=tuple(transforms),
        kl=kl if kl.coefficient else None,
        entropy_bonus=entropy_bonus,
        needs_entropy=objective.needs_entropy or entropy_advantage or entropy_bonus is not None,
        needs_reference=kl.coefficient > 0,
        proxy_kappa=objective.needs_proxy,
        needs_step=objective.needs_step or isinstance(entropy_bonus, AdaptiveEntropy),
        observes_live=objective.needs_step and (objective.observes_live or entropy_advantage),
        selections=_selections(algorithm),
    )


def _entropy_bonus(algorithm: AlgorithmConfig) -> EntropyBonus | AdaptiveEntropy | None:
    settings, fixed = algorithm.adaptive_entropy, algorithm.entropy_coefficient
    if settings.target is None:
        return EntropyBonus(fixed) if fixed != 0 else None
    require(fixed == 0, "entropy_coefficient", fixed, "must be 0 where adaptive_entropy.target is set")
    return AdaptiveEntropy(settings.target, settings.delta, settings.minimum, settings.maximum)


def _selections(algorithm: AlgorithmConfig) -> tuple[Selection, ...]:
    threshold, low_first = algorithm.lopti.threshold, algorithm.lopti.low_first
    return () if threshold is None else (Selection(threshold, low_first), Selection(threshold, not low_first))
