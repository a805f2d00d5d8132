"""Whoever dies in the middle of a run, the run is the one that nobody disturbed: the same metrics, the same weights."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file
from stack import RunningStack

from maspo_rl import supervision
from maspo_rl.cluster import ActorFailure
from maspo_rl.run import checked_config, prepare

Result = tuple[list[dict[str, Any]], dict[str, torch.Tensor]]


def trained(stack: RunningStack, path: Path, disturb: Callable[[int], None] = lambda step: None) -> Result:
    """Metrics, times aside, and final weights of four steps, or of what `path` lacks of them; `disturb(n)` is called
    after step n."""
    config = checked_config(
        [
            *("experiment=quickstart", f"run.dir={path}", "run.name=run", "trainer.steps=4", "checkpoint.every=2"),
            *("trainer.prompts_per_step=8", "rollout.samples_per_prompt=4", "data.problems=64"),
            *("eval.problems=8", "eval.samples=2", "eval.every=2", "model.dtype=float32"),
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


@pytest.mark.parametrize(("victim", "step"), [("engine", 1), ("learner", 3)])
def test_a_killed_process_changes_nothing(
    victim: str, step: int, stack: RunningStack, undisturbed: Result, tmp_path: Path
) -> None:
    killed: list[int] = []

    def disturb(reached: int) -> None:
        if reached == step and not killed:
            group = stack.parts.engines if victim == "engine" else stack.parts.learners
            killed.append(group.wait_until_ready()[0])
            os.kill(killed[0], signal.SIGKILL)

    result = trained(stack, tmp_path, disturb)
    assert killed
    assert_same(result, undisturbed)


def test_a_stopped_process_is_named_within_its_deadline_and_changes_nothing(
    stack: RunningStack,
    undisturbed: Result,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The learner in the middle of step 1, before any checkpoint; the engine in the middle of step 2."""
    engines, learners = stack.parts.engines, stack.parts.learners
    monkeypatch.setattr(engines, "timeout_s", 6.0)
    monkeypatch.setattr(learners, "timeout_s", 6.0)
    pids = [engines.wait_until_ready()[0], learners.wait_until_ready()[0]]
    # The engine generates for the evaluation before step 1, too, and both anew with the next learner.
    happened = stack.order(("learner_0", "step", "stop", 1), ("engine_0", "generate", "stop", 5))
    assert_same(trained(stack, tmp_path), undisturbed)
    assert all(marker.exists() for marker in happened)
    since = r"the driver has waited since \d\d:\d\d:\d\d, 6 s, for"
    assert re.search(rf"step 2: {since} rollout engine 0 to finish 'generate'; .*raise rollout.timeout_s", caplog.text)
    assert re.search(rf"step 1: {since} learner rank 0 to finish 'step'; .*raise learner.timeout_s", caplog.text)
    assert not any(map(psutil.pid_exists, pids))


def test_a_full_disk_ends_the_run_and_the_same_command_goes_on(
    stack: RunningStack, undisturbed: Result, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While metrics are written, while the driver saves, while the learner saves; then a shard of the last checkpoint
    is lost."""
    for process, phase, at, failure, told in (
        ("driver", "record", 3, OSError, ""),
        ("driver", "save", 1, OSError, ""),
        ("learner_0", "save", 2, ActorFailure, f"failed at 'save {tmp_path}/run/checkpoints/partial_4': .*"),
    ):
        (happened,) = stack.order((process, phase, "disk_full", at))
        with pytest.raises(failure, match=f"{told}No space left on device"):
            trained(stack, tmp_path)
        assert happened.exists()
    stack.order()
    assert_same(trained(stack, tmp_path), undisturbed)
    shard = next((tmp_path / "run" / "checkpoints" / "step_4" / "learner").iterdir())
    shard.unlink()
    assert_same(trained(stack, tmp_path), undisturbed)
    assert f"{shard} is missing; the checkpoint is left aside" in caplog.text


def assert_same(result: Result, undisturbed: Result) -> None:
    assert result[0] == undisturbed[0]
    for name, expected in undisturbed[1].items():
        assert torch.equal(result[1][name], expected), name
