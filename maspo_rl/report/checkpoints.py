"""Which checkpoint a run goes on from."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

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
