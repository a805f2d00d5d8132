"""Numbers that warn of a run going wrong, or stop it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from maspo_rl.config.errors import RunFailure
from maspo_rl.config.guards import GuardConfig, GuardsConfig


class GuardStop(RunFailure):
    """A guard with the action "stop" tripped. The last checkpoint was written before that step."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A guard that tripped: its name, what it saw, and its action."""

    name: str
    message: str
    action: str


# Guard, metric, and the side of the threshold that is wrong.
_METRICS = {
    "ratio": ("policy/ratio_max", "above"),
    "grad_norm": ("optim/grad_norm", "above"),
    "skipped": ("optim/skipped", "above"),
    "entropy": ("policy/entropy", "below"),
    "length": ("response/length_mean", "below"),
    "truncated": ("response/truncated", "above"),
    "reward": ("reward/mean", "constant"),
}


class Guards:
    """Holds the metrics of the last steps against the thresholds of `config.guards`."""

    def __init__(self, config: GuardsConfig) -> None:
        self._guards: dict[str, GuardConfig] = {field.name: getattr(config, field.name) for field in fields(config)}

    def check(self, history: Sequence[dict[str, Any]]) -> Iterator[Alarm]:
        """The guards that trip at the last line of `history`, the metrics of the run so far, one line a step.

        A guard over n steps trips at the n-th in a row, and again after every n more.
        """
        for name, guard in self._guards.items():
            if guard.threshold is None:
                continue
            metric, side = _METRICS[name]
            newest_first = (line[metric] for line in reversed(history) if metric in line)
            row = _row(newest_first, guard.threshold, side)
            # The first of a row of equal rewards is no repetition yet.
            if row and row % guard.steps == 0:
                value = history[-1][metric]
                yield Alarm(
                    name, f"{metric} is {value:.4g}, {_WORDS[side]} {guard.threshold:g}{_for(row)}", guard.action
                )


def _row(newest_first: Iterator[float], threshold: float, side: str) -> int:
    """For how many of the last steps the metric has been on the wrong side."""
    row, newest = 0, math.nan
    for value in newest_first:
        newest = value if row == 0 else newest
        right = {
            "above": value <= threshold,
            "below": value >= threshold,
            "constant": row > 0 and abs(value - newest) > threshold,
        }[side]
        if right:
            break
        row += 1
    return row - 1 if side == "constant" else row


_WORDS = {"above": "above", "below": "below", "constant": "moving by no more than"}


def _for(row: int) -> str:
    return f", for {row} steps" if row > 1 else ""
