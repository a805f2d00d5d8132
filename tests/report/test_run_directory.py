"""A checkpoint is complete or absent; metrics of a resumed run follow on from it."""

from __future__ import annotations

from pathlib import Path

from maspo_rl.report.run_directory import RunDirectory


def directory_in(path: Path) -> RunDirectory:
    directory = RunDirectory(path / "run")
    directory.create()
    return directory


def test_a_checkpoint_appears_only_when_complete_and_only_the_newest_stay(tmp_path: Path) -> None:
    directory = directory_in(tmp_path)
    for step in (1, 2, 10):
        partial = directory.begin_checkpoint(step)
        (partial / "inner").mkdir()
        (partial / "inner" / "weights").write_text("w")
        assert step not in directory.checkpoint_steps()
        directory.complete_checkpoint(step, keep=2)
    assert directory.checkpoint_steps() == [2, 10]
    assert (directory.checkpoint(10) / "inner" / "weights").read_text() == "w"


def test_an_interrupted_checkpoint_is_begun_anew(tmp_path: Path) -> None:
    directory = directory_in(tmp_path)
    (directory.begin_checkpoint(3) / "torn").write_text("half")
    assert not any(directory.begin_checkpoint(3).iterdir())


def test_metrics_after_the_resumed_step_are_made_again(tmp_path: Path) -> None:
    directory = directory_in(tmp_path)
    for step in range(5):
        directory.append_metrics({"step": step})
    directory.keep_metrics_up_to(2)
    directory.append_metrics({"step": 3})
    assert [line["step"] for line in directory.read_metrics()] == [0, 1, 2, 3]
