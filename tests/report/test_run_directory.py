"""A checkpoint is complete or absent; metrics of a resumed run follow on from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from maspo_rl.report.checkpoints import newest_whole
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
        directory.complete_checkpoint(step, keep=2, facts={})
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


def test_a_last_line_cut_short_is_dropped(tmp_path: Path) -> None:
    directory = directory_in(tmp_path)
    directory.metrics.write_text('{"step": 1}\n{"step": 2, "rew')
    directory.keep_metrics_up_to(5)
    assert [line["step"] for line in directory.read_metrics()] == [1]


def test_a_second_run_in_the_same_directory_is_kept_out(tmp_path: Path) -> None:
    first = directory_in(tmp_path)
    first.claim()
    with pytest.raises(BlockingIOError):
        directory_in(tmp_path).claim()
    del first
    directory_in(tmp_path).claim()


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "harm", "words"),
    [
        ("weights", Path.unlink, "weights is missing"),
        ("weights", lambda file: file.write_bytes(file.read_bytes()[:-1]), "weights has 9 bytes, its manifest says 10"),
        ("weights", flip, "weights does not hold what its manifest says"),
        ("manifest.json", Path.unlink, "has no manifest.json"),
        ("manifest.json", lambda file: file.write_text(file.read_text()[:40]), "is not JSON"),
    ],
)
def test_a_harmed_checkpoint_is_named_and_the_one_before_it_taken(
    name: str, harm: Callable[[Path], object], words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = directory_in(tmp_path)
    for step in (1, 2):
        (directory.begin_checkpoint(step) / "weights").write_bytes(b"0123456789")
        directory.complete_checkpoint(step, keep=2, facts={"ranks": 1})
    harm(directory.checkpoint(2) / name)
    found = newest_whole(directory)
    assert found is not None
    assert found[0] == directory.checkpoint(1)
    assert found[1]["ranks"] == 1
    assert words in caplog.text
