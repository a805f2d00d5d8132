"""`maspo-rl eval`: wrong input is one clear line and exit code 2, before anything starts; rescoring needs no engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maspo_rl.cli import main


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["eval", *arguments]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    return error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["benchmarks=[aime26]"], "benchmark 'aime26': no such file in configs/data; did you mean aime2"),
        ([], "benchmarks=[]: name at least one"),
        (["benchmarks=[aime24]", "k=0"], "k=0: must be at least 1"),
        (["benchmarks=[aime24]", "k=some"], "k=some: must be a list, k=[1,32]"),
        (["benchmarks=[aime24]", "k=8", "eval.samples=4"], "k=8: larger than the 4 samples of a problem"),
        (["benchmarks=[aime24]", "eval.sample=4"], "unknown key 'eval.sample': did you mean eval.samples?"),
        (["benchmarks=[aime24]", "benchmarks.amc23.files=x"], "benchmarks.amc23: is not among benchmarks=[aime24]"),
        (["benchmarks=[aime24]", "benchmarks.aime24.files=/none.jsonl"], "/none.jsonl: no such file"),
        (["benchmarks=[arithmetic]", "model=/nowhere/policy"], "model.path=/nowhere/policy: no such directory"),
        (["benchmarks=[arithmetic]", "eval.max_new_tokens=1020"], "embedded has 1024 positions"),
        (["--rescore", "/nowhere"], "--rescore /nowhere: has no samples"),
        (["--rescore", "/nowhere", "seed=1"], "seed=1: --rescore takes k= and verifier.<key>= alone"),
    ],
)
def test_wrong_input(arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = [] if "--rescore" in arguments else [f"run.dir={tmp_path}"]
    assert said in refused([*arguments, *where], capsys)


def test_missing_columns_and_empty_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.jsonl"
    arguments = ["benchmarks=[local]", f"benchmarks.local.files={file}", f"run.dir={tmp_path}"]
    file.write_text('{"problem": "1 + 1", "anser": "2"}\n')
    assert "no 'answer' in" in refused(arguments, capsys)
    file.write_text('{"problem": "1 + 1", "answer": "nan"}\n')
    assert "no answer can be judged against any of the 1 heldout golds" in refused(arguments, capsys)
    file.write_text("")
    assert "'local' has no heldout problems" in refused(arguments, capsys)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two problems of four samples, one of two correct in each; verdicts all still "wrong"."""
    folder = tmp_path / "run" / "evaluation"
    folder.mkdir(parents=True)
    rows: list[dict[str, Any]] = [
        {
            "evaluation": "m",
            "judged_by": "before",
            "prompt_id": f"p{problem}",
            "gold": "7",
            "dataset": "d",
            "sample_index": index,
            "response": f"\\boxed{{{7 if index % 2 else problem}}}",
            "finish_reason": "stop",
            "verdict": {"label": "wrong", "reward": 0.0, "extracted": "?"},
        }
        for problem in range(2)
        for index in range(4)
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder.parent


def test_rescoring(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "k=5: larger than the 4 samples" in refused(["--rescore", str(run), "k=5"], capsys)
    assert main(["eval", "--rescore", str(run), "k=[1,4]"]) == 0
    output = capsys.readouterr().out
    assert "d: 4 wrong -> correct" in output
    summary = json.loads((run / "evaluation.json").read_text())
    estimates = {name: entry["value"] for name, entry in summary["benchmarks"]["d"]["estimates"].items()}
    assert estimates == {
        **{"avg@4": 0.5, "pass@1": 0.5, "pass@4": 1.0, "any@4": 1.0, "maj@4": 0.5},
        "best@4": 1 - 0.5**4,
    }
    assert summary["verifier"]["math_verify"]
    assert summary["benchmarks"]["d"]["judged_by"] == [summary["verifier"]["digest"]]
    assert summary["benchmarks"]["d"]["samples"] == 8
    assert "without replacement" in summary["estimators"]["pass"]
