"""Faults that a run ends by, or goes on after: the outcome that docs/runs.md promises, and nothing lost."""

from __future__ import annotations

import math

import pytest
from stack import RunningStack, sequence_batch

from maspo_rl.learner.rank import NonFiniteUpdate


def test_a_gradient_that_is_no_number_is_left_out_and_counted(stack: RunningStack) -> None:
    stack.begin()
    batch = sequence_batch(stack.sample(stack.publish()), 0)
    (poisoned,) = stack.order(("learner_0", "backward", "nan", 1))
    metrics = stack.parts.learners.step(batch)
    assert poisoned.exists()
    assert (metrics["optim/updates"], metrics["optim/skipped"]) == (1.0, 1.0)
    assert all(map(math.isfinite, metrics.values()))


def test_a_step_of_which_nothing_can_be_applied_ends_the_run_with_the_weights_as_they_were(stack: RunningStack) -> None:
    stack.begin()
    batch = sequence_batch(stack.sample(stack.publish()), 0)
    before = stack.parts.learners.send_weights()
    poisoned = stack.order(("learner_0", "backward", "nan", 1), ("learner_0", "backward", "nan", 2))
    with pytest.raises(NonFiniteUpdate, match="none of the 2 updates could be applied"):
        stack.parts.learners.step(batch)
    assert all(marker.exists() for marker in poisoned)
    assert stack.parts.learners.send_weights() == before
