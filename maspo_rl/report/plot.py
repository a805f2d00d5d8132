"""The curves of a run as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

_PANELS = (
    ("accuracy", ("reward/correct", "eval")),
    ("response length, tokens", ("response/length_mean",)),
    ("entropy, nats", ("policy/entropy",)),
    ("gradient norm", ("optim/grad_norm",)),
)


def draw_curves(metrics: list[dict[str, Any]], path: Path, title: str) -> None:
    """Draws training accuracy with every evaluation, length, entropy and gradient norm over steps into a PNG."""
    figure, axes = pyplot.subplots(2, 2, figsize=(10, 6.5), constrained_layout=True)
    figure.suptitle(title)
    for axis, (label, names) in zip(axes.flat, _PANELS, strict=True):
        for name in names:
            if name == "eval":
                _draw_evaluations(axis, metrics)
                continue
            points = [(line["step"], line[name]) for line in metrics if line.get(name) is not None]
            if points:
                axis.plot(*zip(*points, strict=True), label="training samples" if label == "accuracy" else None)
        axis.set_xlabel("step")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    axes.flat[0].set_ylim(0, 1)
    axes.flat[0].legend(loc="lower right", fontsize="small")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _draw_evaluations(axis: Any, metrics: list[dict[str, Any]]) -> None:
    for name in sorted({key for line in metrics for key in line if key.startswith("eval/")}):
        points = [(line["step"], line[name]) for line in metrics if name in line]
        axis.plot(*zip(*points, strict=True), marker="o", label=f"held out, {name.removeprefix('eval/')}")
