"""`maspo-rl objective`: what an objective does to single tokens, in numbers and as a picture. No run is started."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from maspo_rl import objectives
from maspo_rl.config.errors import InputError
from maspo_rl.objectives.base import Objective
from maspo_rl.registry import build, nearest
from maspo_rl.types import TokenBatch, Totals

REQUIRED = ("old_prob", "ratio", "advantage", "sequence")
OPTIONAL = ("entropy", "proxy_prob")
"""`entropy` in nats, for objectives that use it; `proxy_prob`, for lp_reg, is 0 where the proxy's filter drops the
token, which is also what a row without it means."""


def main(arguments: list[str]) -> int:
    """`NAME [field=value ...] --tokens FILE` prints numbers; `NAME ... [field=value ...] --plot FILE` draws. 0 when
    done."""
    parser = argparse.ArgumentParser(prog="maspo-rl objective", allow_abbrev=False)
    parser.add_argument("words", nargs="+", metavar="NAME | field=value")
    parser.add_argument("--tokens", type=Path, help='JSON lines {"old_prob", "ratio", "advantage", "sequence"}')
    parser.add_argument("--plot", type=Path, help="draw gradient weights of one or several objectives: PNG and SVG")
    options = parser.parse_intermixed_args(arguments)
    names = [word for word in options.words if "=" not in word]
    parameters = [word for word in options.words if "=" in word]
    if not names:
        raise InputError(f"objective: name one of {', '.join(objectives.catalogue())}")
    if options.plot is not None:
        for path in plot_objectives(names, parameters, options.plot):
            print(path)
        return 0
    if options.tokens is None or len(names) != 1:
        raise InputError("objective: one name with --tokens FILE for numbers, or one or more with --plot FILE")
    for line in run_objective(names[0], parameters, options.tokens):
        print(line)
    return 0


def run_objective(name: str, parameters: Sequence[str], tokens_file: Path) -> Iterator[str]:
    """One JSON object per token of `tokens_file`: its `loss` before aggregation and its gradient `weight`
    -(d loss / d logprob) / A, which is 0 where A is 0. All tokens of the file are one optimiser step, in float64.

    `parameters` are `field=value` of the objective. Raises InputError for an unknown objective, field or value, and
    for a row that is not {"old_prob", "ratio", "advantage", "sequence"}, with `entropy` or `proxy_prob` where used.
    """
    objective = build("objective", objectives.catalogue(), name, parse_parameters(parameters))
    rows = read_tokens(tokens_file, with_entropy=objective.needs_entropy)
    for loss, weight in zip(*evaluate(objective, rows), strict=True):
        yield json.dumps({"loss": loss, "weight": weight})


def parse_parameters(parameters: Sequence[str]) -> dict[str, Any]:
    """`field=value` each; values are numbers, true, false, null or words."""
    parsed = {}
    for parameter in parameters:
        field, equals, text = parameter.partition("=")
        if not equals or not field:
            raise InputError(f"{parameter!r}: must be of the form field=value")
        parsed[field] = _value(text)
    return parsed


def _value(text: str) -> Any:
    try:
        return float(text) if text.lstrip("+-").startswith(".") else json.loads(text)
    except ValueError:
        return text


def read_tokens(path: Path, *, with_entropy: bool) -> list[dict[str, float]]:
    """The rows of a JSON-lines file, checked. Raises InputError naming the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name a file of JSON lines") from error
    rows = [_row(f"{path}:{number}", line, with_entropy) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise InputError(f"{path}: has no tokens; write one JSON object a line with {', '.join(REQUIRED)}")
    return rows


def _row(where: str, line: str, with_entropy: bool) -> dict[str, float]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: is not JSON ({error.msg})") from error
    if not isinstance(row, dict):
        raise InputError(f"{where}: must be a JSON object with {', '.join(REQUIRED)}")
    for key, value in row.items():
        if key not in REQUIRED + OPTIONAL:
            raise InputError(f"{where}: unknown key {key!r}; {nearest(key, REQUIRED + OPTIONAL)}")
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise InputError(f"{where}: {key}={value!r}: must be a finite number")
    for key in REQUIRED + ("entropy",) * with_entropy:
        if key not in row:
            raise InputError(f"{where}: {key} is missing; give it in each row")
    for key, rule, holds in (
        ("old_prob", "in (0, 1]", 0 < row["old_prob"] <= 1),
        ("ratio", "above 0", row["ratio"] > 0),
        ("sequence", "a whole number from 0", row["sequence"] >= 0 and row["sequence"] == int(row["sequence"])),
    ):
        if not holds:
            raise InputError(f"{where}: {key}={row[key]!r}: must be {rule}")
    return row


def evaluate(objective: Objective, rows: Sequence[dict[str, float]]) -> tuple[list[float], list[float]]:
    """Loss and gradient weight of each row; the rows are one optimiser step."""

    def column(key: str) -> Tensor:
        return torch.tensor([float(row.get(key, 0.0)) for row in rows], dtype=torch.float64)

    sequences, sequence = column("sequence").long().unique(return_inverse=True)  # type: ignore[no-untyped-call]
    old_logprob = column("old_prob").log()
    batch = TokenBatch(
        logprob=(old_logprob + column("ratio").log()).requires_grad_(),
        old_logprob=old_logprob,
        rollout_logprob=old_logprob,
        advantage=column("advantage"),
        sequence=sequence,
        group=torch.zeros_like(sequences),
        totals=Totals(len(rows), len(sequences)),
        entropy=column("entropy"),
        proxy_logprob=column("proxy_prob").log(),
    )
    with torch.no_grad():
        step = objective.observe(batch, lambda tensor, operation: tensor) if objective.needs_step else None
    loss = objective.token_loss(batch, step).loss
    counted = loss / torch.bincount(sequence)[sequence] if objective.per_sequence else loss
    (gradient,) = torch.autograd.grad(counted.sum(), batch.logprob)
    moved = batch.advantage != 0
    weight = torch.where(moved, -gradient / torch.where(moved, batch.advantage, 1.0), 0.0)
    return loss.tolist(), (weight + 0.0).tolist()  # + 0.0 turns -0.0 into 0.0


def plot_objectives(names: Sequence[str], parameters: Sequence[str], out: Path) -> list[Path]:
    """Gradient weight against ratio for several old probabilities and both signs of the advantage, one column an
    objective; written to `out`.png and `out`.svg (either suffix may be given).

    A parameter goes to each of the objectives that has it. Raises InputError for one that none of them has.
    """
    import matplotlib  # noqa: PLC0415 - half a second that only pictures pay

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    parsed = parse_parameters(parameters)
    built = {name: build("objective", objectives.catalogue(), name, _own(name, parsed)) for name in names}
    for field in parsed:
        if not any(field in _fields(name) for name in names):
            known = set().union(*(_fields(name) for name in names))
            raise InputError(f"none of {', '.join(names)} has a parameter {field!r}; {nearest(field, known)}")
    figure, axes = pyplot.subplots(
        2, len(names), figsize=(1 + 3 * len(names), 5.5), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    ratios = [0.02 * step for step in range(1, 201)]
    colours = matplotlib.colormaps["viridis"]
    for column, (name, objective) in enumerate(built.items()):
        for row, advantage in enumerate((1.0, -1.0)):
            panel = axes[row][column]
            panel.axvline(1.0, color="0.8", linewidth=0.8)
            panel.plot(ratios, ratios, color="0.8", linewidth=0.8)
            for shade, old_prob in enumerate((0.001, 0.05, 0.2, 0.5, 0.9)):  # wide to narrow: all show where they meet
                possible = [ratio for ratio in ratios if ratio * old_prob <= 1]
                rows = [
                    {"old_prob": old_prob, "ratio": ratio, "advantage": advantage, "sequence": index, "entropy": 1.0}
                    for index, ratio in enumerate(possible)
                ]
                _, weight = evaluate(objective, rows)
                style = {"color": colours(shade / 5), "linewidth": 3.6 - 0.6 * shade, "label": f"{old_prob:g}"}
                panel.plot(possible, weight, **style)
            panel.set_ylim(-0.1, 3.2)
            if row == 0:
                panel.set_title(name)
            if column == 0:
                panel.set_ylabel(f"gradient weight, A {'>' if advantage > 0 else '<'} 0")
    for panel in axes[1]:
        panel.set_xlabel("ratio r")
    axes[0][0].legend(title="old probability", fontsize="small", title_fontsize="small")
    out.parent.mkdir(parents=True, exist_ok=True)
    stem = out.name.removesuffix(".png").removesuffix(".svg")
    written = [out.with_name(stem + suffix) for suffix in (".png", ".svg")]
    for path in written:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return written


def _fields(name: str) -> set[str]:
    return {field.name for field in fields(objectives.catalogue()[name]) if field.init}


def _own(name: str, parsed: dict[str, Any]) -> dict[str, Any]:
    known = _fields(name) if name in objectives.catalogue() else set()
    return {field: value for field, value in parsed.items() if field in known}
