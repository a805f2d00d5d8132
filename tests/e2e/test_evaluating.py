"""`maspo-rl eval` on the real engine: what it reports can be counted on disk, and a stopped one goes on."""

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
from maspo_rl.evaluation.samples import Sampling


def rows(path: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{**row, "verdict": row["verdict"]["label"]} for row in found]


def test_whole_stopped_and_resumed(stack: RunningStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def engines(*_: Any) -> Iterator[Any]:
        """The session's engine in place of one of its own; the session's learner has the model's weights still."""
        stack.begin()
        stack.parts.engines.confirm(0, stack.parts.learners.send_weights())
        yield stack.parts.engines, stack.parts.verifier

    monkeypatch.setattr(assembly, "running_engines", engines)
    sizes = ("k=4", "eval.problems=24", "eval.max_new_tokens=24", "rollout.max_sequences=16")
    command = ["eval", "benchmarks=[arithmetic]", *sizes, f"run.dir={tmp_path}"]
    assert main([*command, "run.name=whole"]) == 0
    whole = rows(tmp_path / "whole" / "evaluation" / "arithmetic.jsonl")
    assert len(whole) == 24 * 4
    right = [f"\\boxed{{{row['gold']}}}" in row["response"] for row in whole]
    assert [row["verdict"] == "correct" for row in whole] == right
    summary = json.loads((tmp_path / "whole" / "evaluation.json").read_text())
    assert summary["average"]["avg@4"]["value"] == pytest.approx(sum(right) / len(right), abs=1e-6)

    write, calls = Sampling._write, iter([False, True])

    def once(self: Sampling, *arguments: Any) -> None:
        if next(calls):
            raise KeyboardInterrupt
        write(self, *arguments)

    monkeypatch.setattr(Sampling, "_write", once)
    assert main([*command, "run.name=stopped"]) == 1
    monkeypatch.setattr(Sampling, "_write", write)
    path = tmp_path / "stopped" / "evaluation" / "arithmetic.jsonl"
    assert 0 < len(rows(path)) < len(whole)
    assert main([*command, "run.name=stopped"]) == 0
    assert rows(path) == whole
