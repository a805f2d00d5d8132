"""The plan's memory against that of the running stack."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from stack import RunningStack, sequence_batch

from maspo_rl.planning.plan import make_plan


def proportional_gib() -> float:
    """This process and all that it started; a page of n processes counts 1/n in each."""
    root = psutil.Process(os.getpid())
    total = 0
    for process in (root, *root.children(recursive=True)):
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024**2


def test_the_stack_takes_what_is_planned(stack: RunningStack) -> None:
    stack.begin()
    groups = stack.sample(stack.publish())
    stack.parts.learners.step(sequence_batch(groups, seed=0))
    smaller = ["trainer.prompts_per_step=8", "rollout.samples_per_prompt=4", "trainer.updates_per_step=2"]
    plan = make_plan(["experiment=quickstart", "model.dtype=float32", *smaller, f"run.dir={stack.config.run.dir}"])
    assert proportional_gib() == pytest.approx(plan.sections["memory"]["per_node_gib"], rel=0.2)
