"""Every algorithm trains: one word in the configuration, the same engines, a few real steps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from stack import RunningStack

from maspo_rl.run import checked_config, prepare

ALGORITHMS = sorted(path.stem for path in (Path(__file__).parents[2] / "configs" / "algorithm").glob("*.yaml"))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_algorithm_is_one_word(algorithm: str, stack: RunningStack, tmp_path: Path) -> None:
    config = checked_config(
        [
            *("experiment=quickstart", f"algorithm={algorithm}", f"run.dir={tmp_path}", "run.name=run"),
            *("model.dtype=float32", "trainer.steps=2", "trainer.prompts_per_step=8", "trainer.updates_per_step=2"),
            *(
                "rollout.samples_per_prompt=4",
                "eval.problems=8",
                "eval.samples=2",
                "eval.at_start=false",
                "data.problems=64",
            ),
        ]
    )
    stack.parts.begin(config)
    steps: list[dict[str, Any]] = []
    trainer = prepare(config).trainer(stack.parts, steps.append)
    trainer.run()
    assert [step["step"] for step in steps] == [1, 2]
    for step in steps:
        assert step["optim/updates"] > 0
        assert step["optim/skipped"] == 0
        assert all(math.isfinite(value) for value in step.values())
    assert (tmp_path / "run" / "checkpoints" / "step_2" / "policy" / "model.safetensors").exists()
