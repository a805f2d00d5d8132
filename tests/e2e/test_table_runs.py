"""`maspo-rl table` on the real stack: stopped, gone on with, and each run as it would have come out alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from stack import RunningStack

from maspo_rl import assembly
from maspo_rl.cli import main
from maspo_rl.commands import table as command
from maspo_rl.config.table import RowConfig, TableConfig
from maspo_rl.trainer import Trainer

SMALL = TableConfig(
    title="Small",
    rows=[RowConfig("GRPO", ["algorithm=grpo"]), RowConfig("MASPO", ["algorithm=maspo"])],
    seeds=[0],
    overrides=[
        *("experiment=quickstart", "trainer.steps=2", "trainer.prompts_per_step=8", "trainer.updates_per_step=2"),
        *("rollout.samples_per_prompt=4", "eval.every=0", "eval.at_start=false", "eval.problems=16", "eval.samples=2"),
        *("data.problems=64", "optimizer.lr=1e-3"),
    ],
    baseline="GRPO",
    k=2,
    measures=["avg", "any"],
)


def metrics(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if not k.startswith(("time/", "tokens/per_s"))} for line in lines]


def test_stopped_and_gone_on_with(stack: RunningStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def parts(config: Any, *_: Any) -> Iterator[Any]:
        """The session's stack in place of one of its own, as it begins each run."""
        stack.parts.begin(config)
        yield stack.parts

    monkeypatch.setattr(assembly, "running_stack", parts)
    monkeypatch.setattr(command, "load_table", lambda name: SMALL)
    run, calls = Trainer.run, iter([False, True])

    def once(trainer: Trainer) -> None:
        if next(calls, False):
            raise KeyboardInterrupt
        run(trainer)

    monkeypatch.setattr(Trainer, "run", once)
    assert main(["table", "small", f"run.dir={tmp_path}"]) == 1
    (first,) = [path for path in tmp_path.iterdir() if (path / "checkpoints" / "step_2").exists()]
    before = (first / "metrics.jsonl").stat().st_mtime_ns
    assert main(["table", "small", f"run.dir={tmp_path}"]) == 0
    assert (first / "metrics.jsonl").stat().st_mtime_ns == before, "a finished run is not run again"
    text = (tmp_path / "table-small" / "table.md").read_text()
    assert "| GRPO (1 seed) |" in text
    assert "| MASPO (1 seed) |" in text

    # Alone on the stack, and as the second of two: the same run.
    (second,) = [path for path in tmp_path.iterdir() if path.name.startswith("maspo-")]
    assert main(["table", "small", f"run.dir={tmp_path / 'again'}"]) == 0
    assert metrics(tmp_path / "again" / second.name) == metrics(second)
    stack.begin()
