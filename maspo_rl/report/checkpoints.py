"""A run's checkpoints: the learners' share and the driver's, and which one a run goes on from."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maspo_rl.config.errors import naming
from maspo_rl.config.schema import Config
from maspo_rl.report.manifest import read_manifest
from maspo_rl.report.run_directory import RunDirectory


def newest_whole(directory: RunDirectory) -> tuple[Path, dict[str, Any]] | None:
    """The newest checkpoint whose files are what its manifest says, and that; others are named in a warning each."""
    for step in reversed(directory.checkpoint_steps()):
        checkpoint = directory.checkpoint(step)
        try:
            return checkpoint, read_manifest(checkpoint)
        except ValueError as problem:
            logging.getLogger(__name__).warning("%s; the checkpoint is left aside", problem)
    return None


def write_checkpoint(
    directory: RunDirectory, config: Config, step: int, state: dict[str, Any], save_learners: Callable[[Path], None]
) -> None:
    """A complete checkpoint of `step`: `state`, of JSON types, beside what the learners save."""
    partial = directory.begin_checkpoint(step)
    save_learners(partial.resolve())
    facts = {"ranks": config.learner.ranks, "zero_stage": config.learner.zero_stage}
    with naming(partial):
        (partial / "trainer.json").write_text(json.dumps(state))
        directory.complete_checkpoint(step, config.checkpoint.keep, facts)


def load_checkpoint(checkpoint: Path, load_learners: Callable[[Path], None]) -> dict[str, Any]:
    """Has the learners take back their share; the state that `write_checkpoint` was given."""
    load_learners(checkpoint.resolve())
    state: dict[str, Any] = json.loads((checkpoint / "trainer.json").read_text())
    return state
