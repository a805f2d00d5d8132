"""Tables: published numbers as published, ours from samples, differences paired."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from maspo_rl.config.errors import InputError
from maspo_rl.config.keys import choices
from maspo_rl.config.load import load
from maspo_rl.config.table import RowConfig, TableConfig, facts, load_table
from maspo_rl.evaluation.estimators import ESTIMATORS
from maspo_rl.evaluation.tables import cells, write


def samples(path: Path, correct: list[list[bool]]) -> Path:
    """A file of samples: one list of verdicts a problem."""
    rows = [
        {
            **{"evaluation": "", "prompt_id": f"p{problem}", "gold": "1", "dataset": "d", "sample_index": index},
            **{"response": "", "finish_reason": "stop", "judged_by": ""},
            "verdict": {"label": "correct" if right else "wrong", "reward": float(right), "extracted": "1"},
        }
        for problem, own in enumerate(correct)
        for index, right in enumerate(own)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def table() -> TableConfig:
    return TableConfig(
        title="Made up",
        rows=[RowConfig("A", []), RowConfig("B", [])],
        seeds=[0, 1],
        baseline="A",
        k=2,
        measures=["avg", "best"],
        source="nowhere",
        published={"B": {"average": [51.4, 72.9]}, "C": {"X": [10.0, 20.0]}},
    )


def test_cells_are_counted_from_samples(table: TableConfig, tmp_path: Path) -> None:
    half, full, none = [[True, False]] * 4, [[True, True]] * 4, [[False, False]] * 4
    files = {
        "A": {s: {"X": samples(tmp_path / f"a{s}x", none), "Y": samples(tmp_path / f"a{s}y", half)} for s in (0, 1)},
        "B": {s: {"X": samples(tmp_path / f"b{s}x", half), "Y": samples(tmp_path / f"b{s}y", full)} for s in (0, 1)},
    }
    found = {(c.row, c.seeds > 0, c.benchmark, c.measure): c for c in cells(table, files)}
    value = {key: cell.value.value for key, cell in found.items()}
    assert value["A", True, "average", "avg@2"] == 0.25
    assert value["B", True, "X", "avg@2"] == 0.5
    assert value["B", True, "X", "best@2"] == 0.75
    assert value["B", True, "average", "avg@2"] == 0.75
    assert value["B", False, "average", "best@2"] == pytest.approx(0.729)
    assert found["A", True, "average", "avg@2"].difference is None
    gap = found["B", True, "average", "avg@2"].difference
    assert gap is not None
    assert (gap.value, gap.low, gap.high) == (0.5, 0.5, 0.5)

    text = write(table, list(found.values()), tmp_path)
    ours, published = text.index("| B (2 seeds) |"), text.index("| B (published) |")
    assert published < ours
    assert "| C (published) | 10.0 |  |  |  |" in text
    assert "| B (2 seeds) | 50.0 | 100.0 | 75.0 | +50.0 |" in text
    assert (tmp_path / "table.png").read_bytes().startswith(b"\x89PNG")
    assert r"B (2 seeds) & 50.0 & 100.0 & 75.0 & +50.0 \\" in (tmp_path / "table.tex").read_text()
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found)
    assert {row["source"] for row in rows} == {"ours", "published"}


def test_runs_measured_on_other_problems_are_refused(table: TableConfig, tmp_path: Path) -> None:
    files = {
        "A": {0: {"X": samples(tmp_path / "a", [[True, True]])}},
        "B": {0: {"X": samples(tmp_path / "b", [[True, True]] * 2)}},
    }
    with pytest.raises(ValueError, match="other problems"):
        cells(table, files)


@pytest.mark.parametrize("name", choices("table"))
def test_every_table_names_runs_benchmarks_and_measures_that_exist(name: str) -> None:
    table = load_table(name)
    load([*table.overrides, *table.rows[-1].overrides, "seed=1"])
    for row in table.rows:
        assert row.overrides[-1].removeprefix("algorithm=") in choices("algorithm")
    assert set(table.benchmarks) <= set(choices("data"))
    assert set(table.measures) <= set(ESTIMATORS)
    for numbers in table.published.values():
        assert numbers.keys() <= {*table.benchmarks.values(), "average"}
        assert all(len(pair) == len(table.measures) for pair in numbers.values())


@pytest.mark.parametrize("name", ["maspo_1.5b", "maspo_7b"])
def test_published_averages_are_the_means_of_the_published_benchmarks(name: str) -> None:
    """A slip in copying would show: each average is the mean of its six numbers, rounded to one decimal."""
    for row, numbers in load_table(name).published.items():
        parts = [pair for heading, pair in numbers.items() if heading != "average"]
        for position, average in enumerate(numbers["average"]) if parts else ():
            mean = sum(pair[position] for pair in parts) / len(parts)
            assert mean == pytest.approx(average, abs=0.11), (row, position)


def test_the_same_run_has_the_same_name_whatever_the_place() -> None:
    one, two = load(["experiment=quickstart"]), load(["experiment=quickstart", "run.dir=/elsewhere", "resume=never"])
    assert facts(one) == facts(two)
    assert facts(one) != facts(load(["experiment=quickstart", "optimizer.lr=1e-4"]))


def test_wrong_tables() -> None:
    with pytest.raises(InputError, match=re.escape("unknown table 'quickstrt': did you mean quickstart?")):
        load_table("quickstrt")
