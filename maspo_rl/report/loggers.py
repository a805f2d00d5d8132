"""Where metrics go besides metrics.jsonl."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from maspo_rl.config.schema import ReportConfig


class WandbLogger:
    """Weights & Biases: online with a key, offline without one under `auto`; nothing at all under `off`."""

    def __init__(self, config: ReportConfig, directory: Path, run_name: str, resolved: dict[str, Any]) -> None:
        self._run: Any = None
        if config.wandb == "off":
            return
        import wandb  # noqa: PLC0415 - takes two seconds that most quick runs do not need

        mode: Any = config.wandb
        if mode == "auto":
            mode = "online" if os.environ.get("WANDB_API_KEY") or _has_netrc_key() else "offline"
        self._run = wandb.init(
            project="maspo_rl",
            name=run_name,
            dir=str(directory),
            mode=mode,
            config=resolved,
            id=_run_id(run_name),
            resume="allow",
            settings=wandb.Settings(silent=True),
        )

    def log(self, metrics: dict[str, Any]) -> None:
        """One step's metrics."""
        if self._run is not None:
            self._run.log(metrics, step=metrics["step"])

    def close(self) -> None:
        """Writes out what is left."""
        if self._run is not None:
            self._run.finish()


def _has_netrc_key() -> bool:
    netrc = Path.home() / ".netrc"
    return netrc.exists() and "api.wandb.ai" in netrc.read_text()


def _run_id(name: str) -> str:
    return "".join(character if character.isalnum() or character in "-_" else "-" for character in name)
