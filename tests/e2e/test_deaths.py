"""Whoever dies in the middle of a run, the run is the one that nobody disturbed: the same metrics, the same weights."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from stack import RunningStack

from maspo_rl import supervision
from maspo_rl.run import checked_config, prepare

Result = tuple[list[dict[str, Any]], dict[str, torch.Tensor]]


def trained(stack: RunningStack, path: Path, disturb: Callable[[int], None] = lambda step: None) -> Result:
    """Metrics, times aside, and final weights of four steps; `disturb(n)` is called after step n."""
    config = checked_config(
        [
            *("experiment=quickstart", f"run.dir={path}", "run.name=run", "trainer.steps=4", "checkpoint.every=2"),
            *("trainer.prompts_per_step=8", "rollout.samples_per_prompt=4", "data.problems=64"),
            *("eval.problems=8", "eval.samples=2", "eval.every=2"),
        ]
    )
    stack.parts.begin(config)
    run = prepare(config)
    trainer = run.trainer(stack.parts, lambda metrics: disturb(metrics["step"]))
    supervision.run(trainer)
    lines = [
        {name: value for name, value in line.items() if not name.startswith("time/") and name != "tokens/per_s"}
        for line in run.directory.read_metrics()
    ]
    return lines, load_file(run.directory.checkpoint(4) / "policy" / "model.safetensors")


@pytest.fixture(scope="module")
def undisturbed(stack: RunningStack, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return trained(stack, tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize(("victim", "step"), [("engine", 1), ("learner", 1), ("learner", 3)])
def test_a_killed_process_changes_nothing(
    victim: str, step: int, stack: RunningStack, undisturbed: Result, tmp_path: Path
) -> None:
    killed: list[int] = []

    def disturb(reached: int) -> None:
        if reached == step and not killed:
            group = stack.parts.engines if victim == "engine" else stack.parts.learners
            killed.append(group.wait_until_ready()[0])
            os.kill(killed[0], signal.SIGKILL)

    metrics, weights = trained(stack, tmp_path, disturb)
    assert killed
    assert metrics == undisturbed[0]
    for name, expected in undisturbed[1].items():
        assert torch.equal(weights[name], expected), name
