"""Guards trip at the n-th step in a row on the wrong side, and not before."""

from __future__ import annotations

import math
from typing import Any

import pytest

from maspo_rl.config.guards import GuardConfig, GuardsConfig
from maspo_rl.guards import Guards

OFF = {name: GuardConfig(None) for name in vars(GuardsConfig())}


def tripped(name: str, guard: GuardConfig, metric: str, values: list[float]) -> list[int]:
    """The steps at which the guard trips as the values come in."""
    guards = Guards(GuardsConfig(**(OFF | {name: guard})))
    history: list[dict[str, Any]] = [{"step": 0, "eval/a/avg@4": 0.1}]
    steps = []
    for step, value in enumerate(values, 1):
        history.append({"step": step, metric: value})
        steps += [step for alarm in guards.check(history)]
    return steps


@pytest.mark.parametrize(
    ("name", "guard", "metric", "values", "expected"),
    [
        ("ratio", GuardConfig(10.0), "policy/ratio_max", [1, 11, 10, math.inf, math.nan], [2, 4, 5]),
        ("grad_norm", GuardConfig(1.0, 2), "optim/grad_norm", [2, 2, 1, 2, 2, 2, 2], [2, 5, 7]),
        ("entropy", GuardConfig(0.1, 3), "policy/entropy", [1, 0.05, 0.05, 0.05, 0.05, 0.2], [4]),
        ("skipped", GuardConfig(0.0), "optim/skipped", [0, 1, 0], [2]),
        ("reward", GuardConfig(0.0, 3), "reward/mean", [0.5, 0.25, 0.25, 0.25, 0.25, 0.3], [5]),
        ("truncated", GuardConfig(None), "response/truncated", [1, 1, 1], []),
    ],
)
def test_a_guard_trips_at_its_steps(
    name: str, guard: GuardConfig, metric: str, values: list[float], expected: list[int]
) -> None:
    assert tripped(name, guard, metric, values) == expected
