"""An evaluation's numbers with their intervals, as `evaluation.json` and as a table on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy
from rich.table import Table

from maspo_rl.evaluation.estimators import ESTIMATORS, per_problem
from maspo_rl.evaluation.intervals import DRAWS, LEVEL, Estimate, bootstrap
from maspo_rl.evaluation.samples import Row, outcomes, read_samples

AVERAGE = "average"


def summarise(files: Mapping[str, Path], k: Sequence[int]) -> dict[str, Any]:
    """Every estimator at every k, of each benchmark and of their average; `files` are the samples by benchmark.

    avg stands at the largest k alone, where it is measured best; at k = 1 the others say nothing beyond pass@1. Raises
    InputError where no problem of a file has k judged samples.
    """
    wanted = [("avg", max(k)), *(("pass", 1) for number in k if number == 1 < max(k))]
    wanted += [(name, number) for number in sorted(k) if number > 1 for name in ESTIMATORS if name != "avg"]
    values: dict[str, list[numpy.ndarray]] = {f"{name}@{number}": [] for name, number in wanted}
    benchmarks: dict[str, Any] = {}
    for benchmark, path in files.items():
        judges: set[str] = set()
        found = list(outcomes(_noting(read_samples(path), judges)).values())
        estimates = {}
        for name, number in wanted:
            each = per_problem(name, found, number)
            values[f"{name}@{number}"].append(each)
            estimates[f"{name}@{number}"] = _shown(bootstrap([each])) | {"problems": int((~numpy.isnan(each)).sum())}
        benchmarks[benchmark] = {
            "samples_file": str(path),
            "judged_by": sorted(judges),
            "problems": len(found),
            "samples": sum(len(outcome.correct) + outcome.unjudged for outcome in found),
            "unjudged": sum(outcome.unjudged for outcome in found),
            "truncated": sum(outcome.truncated for outcome in found),
            "estimates": estimates,
        }
    return {
        "benchmarks": benchmarks,
        AVERAGE: {name: _shown(bootstrap(each)) for name, each in values.items()},
        "estimators": {name: " ".join((function.__doc__ or "").split()) for name, function in ESTIMATORS.items()},
        "intervals": f"{LEVEL:.0%} percentile bootstrap over problems, {DRAWS} draws",
    }


def _noting(rows: Iterator[Row], judges: set[str]) -> Iterator[Row]:
    for row in rows:
        judges.add(row["judged_by"])
        yield row


def _shown(estimate: Estimate) -> dict[str, Any]:
    return {name: round(value, 6) for name, value in asdict(estimate).items()}


def table(summary: Mapping[str, Any], title: str) -> Table:
    """The estimates in percent with their intervals, benchmark by benchmark, the average last."""
    shown = Table("benchmark", "measure", title=title, caption=summary["intervals"])
    for heading in ("value", "interval", "problems"):
        shown.add_column(heading, justify="right")
    parts = {name: part["estimates"] for name, part in summary["benchmarks"].items()}
    for benchmark, estimates in (parts | ({AVERAGE: summary[AVERAGE]} if len(parts) > 1 else {})).items():
        for name, e in estimates.items():
            interval = f"{100 * e['low']:.1f} to {100 * e['high']:.1f}"
            shown.add_row(benchmark, name, f"{100 * e['value']:.1f}", interval, str(e.get("problems", "")))
        shown.add_section()
    return shown
