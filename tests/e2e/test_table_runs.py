"""`maspo-rl table` on the real stack: stopped, gone on with, and each run as it would have come out alone."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stack import RunningStack

from maspo_rl import assembly
from maspo_rl.cli import main
from maspo_rl.commands import table as command
from maspo_rl.config.table import RowConfig, TableConfig
from maspo_rl.data.arithmetic import distinct
from maspo_rl.trainer import Trainer

SMALL = TableConfig(
    title="Small",
    rows=[RowConfig("GRPO", ["algorithm=grpo"]), RowConfig("MASPO", ["algorithm=maspo"])],
    seeds=[0],
    overrides=[
        *("experiment=quickstart", "trainer.steps=2", "trainer.prompts_per_step=8", "trainer.updates_per_step=2"),
        *("rollout.samples_per_prompt=4", "eval.every=0", "eval.at_start=false", "eval.problems=16", "eval.samples=2"),
        *("data.problems=64", "optimizer.lr=1e-3", "model.dtype=float32"),
    ],
    baseline="GRPO",
    k=2,
    measures=["avg", "any"],
)


MEASURED = replace(
    SMALL,
    overrides=[*SMALL.overrides, "eval.at_end=false", "data.problems=13", "report.samples_per_step=99"],
    benchmarks={"arithmetic": "Sums", "local": "Mine"},
    evaluation=["cluster=single_node_8gpu", "eval.max_new_tokens=8192"],
    measures=["avg", "best"],
    source="nobody",
    published={"GRPO": {"Mine": [33.2, 71.8]}, "DGPO": {"average": [52.7, 73.0]}},
)


def metrics(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if not k.startswith(("time/", "tokens/per_s"))} for line in lines]


@pytest.fixture
def shared(stack: RunningStack, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningStack]:
    """The session's stack in place of one of its own, as it begins each run and each evaluation."""

    @contextmanager
    def parts(config: Any, *_: Any) -> Iterator[Any]:
        stack.parts.begin(config)
        yield stack.parts

    @contextmanager
    def engines(config: Any, *_: Any) -> Iterator[Any]:
        stack.parts.begin(config)
        stack.parts.publish(0)
        yield stack.parts.engines, stack.parts.verifier

    monkeypatch.setattr(assembly, "running_stack", parts)
    monkeypatch.setattr(assembly, "running_engines", engines)
    yield stack
    stack.begin()


@pytest.mark.usefixtures("shared")
def test_stopped_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.usefixtures("shared")
def test_benchmarks_are_columns_beside_published_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The final policies are measured on this machine, on local files that are taken out of training too."""
    monkeypatch.setattr(command, "load_table", lambda name: MEASURED)
    problems = distinct([2], "train", 0, 13)
    apart = problems[:5]
    mine = tmp_path / "mine.jsonl"
    mine.write_text("".join(json.dumps({"problem": row.text, "answer": row.gold}) + "\n" for row in apart))
    here = ["cluster=local_cpu", "eval.max_new_tokens=24", "eval.problems=6", f"run.dir={tmp_path}"]
    own = [f"benchmarks.local.files={mine}", "benchmarks.local.instruction=null"]
    assert main(["table", "small", *here, *own]) == 0

    with (tmp_path / "table-small" / "table.csv").open() as file:
        cells = {(row["row"], row["source"], row["benchmark"], row["measure"]): row for row in csv.DictReader(file)}
    (run,) = tmp_path.glob("grpo-*")
    for heading, name, asked in (("Sums", "arithmetic", 6), ("Mine", "local", 5)):
        samples = [json.loads(line) for line in (run / "final" / "evaluation" / f"{name}.jsonl").open()]
        right = [row["verdict"]["label"] == "correct" for row in samples]
        assert len(right) == 2 * asked
        assert float(cells["GRPO", "ours", heading, "avg@2"]["value"]) == pytest.approx(sum(right) / len(right))
    assert float(cells["GRPO", "published", "Mine", "best@2"]["value"]) == pytest.approx(0.718)
    text = (tmp_path / "table-small" / "table.md").read_text()
    assert "| method | Sums | Mine | average | difference, average |" in text
    assert text.index("| GRPO (published) |  | 33.2 |  |") < text.index("| GRPO (1 seed) |")
    assert "| DGPO (published) |  |  | 52.7 |  |" in text
    assert r"\begin{tabular}{lrrrr}" in (tmp_path / "table-small" / "table.tex").read_text()
    assert (tmp_path / "table-small" / "table.png").stat().st_size > 10_000
    sampled = {json.loads(line)["problem"] for path in run.glob("samples/*") for line in path.open()}
    assert sampled == {row.text for row in problems[5:]}
