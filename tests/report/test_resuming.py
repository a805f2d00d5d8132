"""What a run is told when it cannot go on: one line, with the remedy, and nothing of what lies there is touched."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from maspo_rl import cli
from maspo_rl.commands import train
from maspo_rl.config.errors import InputError
from maspo_rl.config.load import load
from maspo_rl.config.schema import Config
from maspo_rl.report.checkpoints import write_checkpoint
from maspo_rl.report.run_directory import RunDirectory, write_jsonl
from maspo_rl.run import checkpoint_of, open_directory


def run_in(path: Path, *overrides: str) -> tuple[Config, RunDirectory]:
    """A run with checkpoints of steps 1 and 2."""
    config = load(["experiment=quickstart", f"run.dir={path}", "run.name=run", *overrides])
    directory = RunDirectory(path / "run")
    directory.create()
    for step in (1, 2):
        (directory.begin_checkpoint(step) / "shard").write_text("state")
        directory.complete_checkpoint(step, keep=2, facts={"ranks": 1, "zero_stage": 0})
    return config, directory


def test_a_run_of_which_no_checkpoint_is_whole_is_not_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config, directory = run_in(tmp_path)
    directory.append_metrics({"step": 2})
    (directory.checkpoint(1) / "shard").unlink()
    (directory.checkpoint(2) / "shard").write_text("st")
    with pytest.raises(InputError, match=r"none of its 2 checkpoints is whole.*choose another run.name") as caught:
        checkpoint_of(config, directory)
    assert len(str(caught.value).splitlines()) == 1
    assert "step_1/shard is missing" in caplog.text
    assert "step_2/shard has 2 bytes, its manifest says 5" in caplog.text
    assert directory.read_metrics() == [{"step": 2}]


def test_a_named_checkpoint_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    named = tmp_path / "run" / "checkpoints" / "step_2"
    config, directory = run_in(tmp_path, f"resume={named}")
    (named / "shard").unlink()
    with pytest.raises(InputError, match="step_2/shard is missing; name another checkpoint"):
        checkpoint_of(config, directory)


def test_other_ranks_are_refused(tmp_path: Path) -> None:
    config, directory = run_in(tmp_path, "learner.ranks=2")
    with pytest.raises(InputError, match=r"learner.ranks=2: .*step_2 was written with 1; resume with that"):
        checkpoint_of(config, directory)


def test_a_second_run_in_the_same_directory_is_told_so(tmp_path: Path) -> None:
    config, directory = run_in(tmp_path)
    directory.claim()
    with pytest.raises(InputError, match=r"run: another process runs in it; wait, or choose another run.name"):
        open_directory(config)


def test_a_full_disk_is_one_line_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: list[str]) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(train, "main", full)
    assert cli.main(["train"]) == 1
    said = capsys.readouterr().err
    assert said == "maspo-rl: [Errno 28] No space left on device; free some space, and the same command goes on\n"


def test_a_full_disk_is_told_with_the_file(tmp_path: Path) -> None:
    """/dev/full refuses every byte with ENOSPC, and says of no file; nor does Python where a write fails."""
    config, directory = run_in(tmp_path)
    directory.metrics.unlink(missing_ok=True)
    directory.metrics.symlink_to("/dev/full")
    (directory.samples / "step_3.partial").symlink_to("/dev/full")

    def full_for_the_driver(partial: Path) -> None:
        (partial / "trainer.json").symlink_to("/dev/full")

    for path, write in (
        (directory.metrics, lambda: directory.append_metrics({"step": 3})),
        (directory.samples / "step_3.partial", lambda: write_jsonl(directory.samples / "step_3.jsonl", [{}])),
        (directory.checkpoints / "partial_3", lambda: write_checkpoint(directory, config, 3, {}, full_for_the_driver)),
    ):
        with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
            write()
