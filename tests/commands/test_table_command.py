"""`maspo-rl table`: what is missing is listed, what was published is shown, wrong input is one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress

from maspo_rl import many
from maspo_rl.cli import main
from maspo_rl.commands import table as command
from maspo_rl.config.schema import Config
from maspo_rl.config.table import load_table


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["maspo_2b"], "unknown table 'maspo_2b': did you mean maspo_"),
        (["quickstart", "seed=3"], "seed=3: a table's file names its seeds"),
        (["quickstart", "eval.samples=4"], "eval.samples=4: this table needs k=8 samples"),
        (["maspo_scaling", "benchmarks.amc23.fils=a"], "unknown key 'data.fils': did you mean data.files?"),
        (["quickstart", "trainer.step=3"], "unknown key 'trainer.step': did you mean trainer.steps?"),
        (["quickstart", "trainer.updates_per_step=3"], "trainer.updates_per_step=3: must divide"),
    ],
)
def test_wrong_input(arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", *arguments, f"run.dir={tmp_path}"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_collecting_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", "maspo_scaling", "--collect", f"run.dir={tmp_path}"]) == 0
    output = capsys.readouterr()
    assert output.err.count("missing") == 6
    assert "| MASPO 7B (published) | 61.8 |" in output.out
    assert {path.name for path in tmp_path.iterdir()} == {"table-maspo_scaling"}
    assert {path.name for path in (tmp_path / "table-maspo_scaling").iterdir()} == {
        *("table.md", "table.tex", "table.csv", "table.png"),
    }


def test_the_bar_counts_the_steps_of_resumed_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run goes on from step 30; the second goes back from 20 to its checkpoint at 10."""
    table = load_table("quickstart")
    runs = dict(list(command._runs(table, [f"run.dir={tmp_path}"]).items())[:2])
    bar, counts = Progress(disable=True), []

    def run_many(configs: Iterable[Config], on_step: Any, _: object) -> Iterator[tuple[Config, None]]:
        for config, steps in zip(configs, ((31, 40), (1, 20, 11, 40)), strict=True):
            for step in steps:
                on_step({"step": step})
                counts.append(bar.tasks[0].completed)
            yield config, None

    monkeypatch.setattr(many, "run_many", run_many)
    monkeypatch.setattr(command, "progress_bar", lambda console: bar)
    command._train(runs, table, [], Console(quiet=True))
    assert counts == [31, 40, 41, 60, 51, 80]
    assert bar.tasks[0].total == 80
