"""`runs/<name>/`: where everything of a run lies."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from maspo_rl.config.errors import naming
from maspo_rl.report.manifest import write_manifest
from maspo_rl.types import Group

_STEP = "step_"


class RunDirectory:
    """Paths and files of one run. Nothing else writes into it but the actors' logs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.metrics = path / "metrics.jsonl"
        self.samples = path / "samples"
        self.checkpoints = path / "checkpoints"
        self.evaluation = path / "evaluation"
        self.logs = path / "logs"
        self.curves = path / "curves.png"
        self._claim: IO[str] | None = None

    def create(self) -> None:
        """Makes the folders. Raises OSError where that is not allowed."""
        for folder in (self.samples, self.checkpoints, self.evaluation, self.logs):
            folder.mkdir(parents=True, exist_ok=True)

    def claim(self) -> None:
        """Keeps other processes out for as long as this object lives. Raises BlockingIOError where one is in."""
        self._claim = (self.path / ".lock").open("a")
        fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Lets others in again, before this object is gone."""
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def append_metrics(self, metrics: dict[str, Any]) -> None:
        """One step's metrics as one line, written through to the disk."""
        with naming(self.metrics), self.metrics.open("a") as file:
            file.write(json.dumps(metrics) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """All lines so far; none for a run that has not begun."""
        return list(read_jsonl(self.metrics)) if self.metrics.exists() else []

    def keep_metrics_up_to(self, step: int) -> None:
        """Drops lines of steps after `step`, which a resumed run makes again, and a last line that was cut short."""
        if self.metrics.exists():
            whole = [line for line in self.metrics.read_text().splitlines(keepends=True) if line.endswith("\n")]
            write_jsonl(self.metrics, (line for line in map(json.loads, whole) if line["step"] <= step))

    def write_samples(self, name: str, groups: list[Group], limit: int) -> Path:
        """Up to `limit` responses, whole groups first, with verdicts and rewards, as `samples/<name>.jsonl`."""
        rows = [
            {
                "prompt_id": group.prompt.id,
                "problem": group.prompt.text,
                "gold": group.prompt.gold,
                "sample_index": rollout.sample_index,
                "response": rollout.text,
                "tokens": len(rollout.token_ids),
                "finish_reason": rollout.finish_reason,
                "reward": reward,
                "verdict": asdict(verdict),
            }
            for group in groups
            for rollout, verdict, reward in zip(group.rollouts, group.verdicts, group.rewards, strict=True)
        ]
        path = self.samples / f"{name}.jsonl"
        write_jsonl(path, rows[:limit])
        return path

    def checkpoint_steps(self) -> list[int]:
        """Steps of which there is a complete checkpoint, oldest first."""
        return sorted(
            int(folder.name.removeprefix(_STEP))
            for folder in self.checkpoints.glob(f"{_STEP}*")
            if folder.name.removeprefix(_STEP).isdigit()
        )

    def checkpoint(self, step: int) -> Path:
        """Where the checkpoint of `step` lies or will lie."""
        return self.checkpoints / f"{_STEP}{step}"

    def begin_checkpoint(self, step: int) -> Path:
        """An empty folder to write a checkpoint into; `complete_checkpoint` gives it its name."""
        partial = self.checkpoints / f"partial_{step}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        return partial

    def complete_checkpoint(self, step: int, keep: int, facts: dict[str, Any]) -> Path:
        """Names the folder that was begun, all files on the disk and listed, and removes all but the `keep` newest."""
        partial, final = self.checkpoints / f"partial_{step}", self.checkpoint(step)
        write_manifest(partial, {"step": step, **facts})
        for file in partial.rglob("*"):
            _flush(file)
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
        _flush(self.checkpoints)
        for old in self.checkpoint_steps()[:-keep]:
            shutil.rmtree(self.checkpoint(old))
        return final


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file."""
    with path.open() as file:
        for line in file:
            yield json.loads(line)


def write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Writes beside and renames: the file is there whole or as it was."""
    beside = path.with_suffix(".partial")
    with naming(beside), beside.open("w") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    beside.rename(path)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
