"""`maspo-rl table`: what is missing is listed, what was published is shown, wrong input is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from maspo_rl.cli import main


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
