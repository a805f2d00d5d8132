"""From the evaluation samples of many runs to a table: our rows under the published ones, with intervals."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy

from maspo_rl.config.table import RowConfig, TableConfig
from maspo_rl.evaluation.estimators import per_problem
from maspo_rl.evaluation.intervals import LEVEL, Estimate, over_seeds
from maspo_rl.evaluation.samples import outcomes, read_samples

AVERAGE = "average"
Files = Mapping[str, Mapping[int, Mapping[str, Path]]]
"""Row -> seed -> heading of the benchmark -> its samples."""
_Seeds = dict[int, list[numpy.ndarray]]
_COLUMNS = (
    *("row", "source", "seeds", "benchmark", "measure", "value", "low", "high"),
    *("against", "difference", "difference_low", "difference_high"),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of one row. `seeds` is 0 where it was published; `difference` is to the row `against`."""

    row: str
    benchmark: str
    measure: str
    value: Estimate
    seeds: int
    difference: Estimate | None = None
    against: str = ""


def cells(table: TableConfig, files: Files) -> list[Cell]:
    """All cells: of each row first the published ones, then ours, where `files` has its samples.

    A difference is taken problem by problem, over the seeds that both rows have.
    """
    headings, measured = _measured(table, files)
    parts = {heading: slice(index, index + 1) for index, heading in enumerate(headings)}
    parts |= {AVERAGE: slice(None)} if len(headings) > 1 else {}
    rows = {row.name: row for row in table.rows}
    found = []
    for name in [*rows, *(name for name in table.published if name not in rows)]:
        for position, measure in enumerate(table.measures):
            for benchmark, numbers in table.published.get(name, {}).items():
                published = Estimate(*[numbers[position] / 100] * 3)
                found.append(Cell(name, benchmark, f"{measure}@{table.k}", published, 0))
            against = rows.get(name, RowConfig(name)).against or table.baseline or name
            own, other = measured[name, measure], measured[against, measure] if against != name else {}
            shared = sorted(own.keys() & other.keys())
            for heading, part in parts.items() if own else ():
                minus = [[a - b for a, b in zip(own[s][part], other[s][part], strict=True)] for s in shared]
                value, difference = over_seeds([own[s][part] for s in own]), over_seeds(minus) if minus else None
                value = replace(value, low=max(0.0, value.low), high=min(1.0, value.high))
                found.append(Cell(name, heading, f"{measure}@{table.k}", value, len(own), difference, against))
    return found


def _measured(table: TableConfig, files: Files) -> tuple[list[str], dict[tuple[str, str], _Seeds]]:
    """The benchmarks' headings; of each row and measure, seed -> one array per benchmark, problems in one order."""
    problems: dict[str, list[str]] = {}
    values: defaultdict[tuple[str, str], _Seeds] = defaultdict(dict)
    for row, seeds in files.items():
        for seed, paths in seeds.items():
            for heading, path in paths.items():
                found = outcomes(read_samples(path))
                order = problems.setdefault(heading, sorted(found))
                if sorted(found) != order:
                    raise ValueError(f"{path}: has other problems than the other rows; give all the same evaluation")
                for measure in table.measures:
                    each = per_problem(measure, [found[problem] for problem in order], table.k)
                    values[row, measure].setdefault(seed, []).append(each)
    return list(problems), values


def _headings(table: TableConfig, found: Sequence[Cell]) -> list[str]:
    """The benchmarks in the table's order, and last what sums them up: the average, or the only one."""
    there = dict.fromkeys(cell.benchmark for cell in found)
    headings = dict.fromkeys([*table.benchmarks.values(), *there])
    return [name for name in headings if name in there and name != AVERAGE] + [AVERAGE] * (AVERAGE in there)


def _grid(table: TableConfig, found: Sequence[Cell], measure: str) -> list[list[str]]:
    """A measure's table in percent, headings first: value and interval of each benchmark, difference of the last."""
    headings = _headings(table, found)
    lines: dict[tuple[str, int], dict[str, Cell]] = {}
    for cell in found:
        if cell.measure == measure:
            lines.setdefault((cell.row, cell.seeds), {})[cell.benchmark] = cell
    grid = [["method", *headings, f"difference, {headings[-1]}"]]
    for (row, seeds), own in lines.items():
        label = f"{row} ({f'{seeds} seed' + 's' * (seeds > 1) if seeds else 'published'})"
        values = [_shown(own[heading].value) if heading in own else "" for heading in headings]
        last = own.get(headings[-1])
        gap = _shown(last.difference, sign="+") if last and last.difference else ""
        grid.append(
            [label, *values, f"{gap} to {last.against}" if last and gap and last.against != table.baseline else gap]
        )
    return grid


def _shown(estimate: Estimate, sign: str = "") -> str:
    value, low, high = (f"{100 * number:{sign}.1f}" for number in (estimate.value, estimate.low, estimate.high))
    return value if estimate.low == estimate.high else f"{value} [{low}, {high}]"


def write(table: TableConfig, found: Sequence[Cell], folder: Path) -> str:
    """Writes `table.md`, `table.tex`, `table.csv` and `table.png` into `folder`; returns the Markdown."""
    measures = list(dict.fromkeys(cell.measure for cell in found))
    note = (
        f"Percent; in brackets {LEVEL:.0%} intervals over problems, and over seeds where there are several. "
        f"Differences are paired by problem{f', to {table.baseline}' if table.baseline else ''}; no interval is "
        f"widened for the number of comparisons. Published rows: {table.source or 'none'}."
    )
    parts = [f"# {table.title}", note]
    tex = []
    for measure in measures:
        head, *rows = _grid(table, found, measure)
        marks = [head, ["---"] * len(head), *rows]
        parts.append(f"## {measure}\n" + "\n".join("| " + " | ".join(line) + " |" for line in marks))
        body = "\n".join(" & ".join(line) + r" \\" for line in rows)
        columns, top = "l" + "r" * (len(head) - 1), " & ".join(head)
        tex.append(
            f"% {measure}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{top} \\\\\n\\midrule\n{body}\n\\bottomrule\n"
            "\\end{tabular}\n"
        )
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text, encoding="utf-8")
    (folder / "table.tex").write_text(f"% {table.title}. {note}\n" + "\n".join(tex), encoding="utf-8")
    _write_csv(found, folder / "table.csv")
    _draw(table, found, folder / "table.png")
    return text


def _write_csv(found: Sequence[Cell], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for cell in found:
            value, gap = cell.value, cell.difference
            numbers = [value.value, value.low, value.high, cell.against if gap else ""]
            numbers += [gap.value, gap.low, gap.high] if gap else ["", "", ""]
            source = "ours" if cell.seeds else "published"
            writer.writerow([cell.row, source, cell.seeds, cell.benchmark, cell.measure, *numbers])


def _draw(table: TableConfig, found: Sequence[Cell], path: Path) -> None:
    """What sums up each row, of every measure, with its interval; published values are hollow."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    measures, summary = list(dict.fromkeys(cell.measure for cell in found)), _headings(table, found)[-1]
    rows = list(dict.fromkeys(cell.row for cell in found))[::-1]
    size = (4.8 * len(measures), 1.5 + 0.35 * len(rows))
    figure, axes = pyplot.subplots(1, len(measures), figsize=size, sharey=True, squeeze=False, constrained_layout=True)
    figure.suptitle(table.title)
    for axis, measure in zip(axes.flat, measures, strict=True):
        chosen = [cell for cell in found if cell.measure == measure and cell.benchmark == summary]
        for published, label in ((True, "published"), (False, f"ours, {LEVEL:.0%} interval")):
            part = [cell for cell in chosen if (cell.seeds == 0) is published]
            if not part:
                continue
            value, low, high = ([100 * getattr(cell.value, name) for cell in part] for name in ("value", "low", "high"))
            margins = numpy.abs(numpy.array([low, high]) - value)
            places = [rows.index(cell.row) + (0.12 if published else -0.12) for cell in part]
            style = {"fmt": "o", "markerfacecolor": "none"} if published else {"fmt": "o", "capsize": 3}
            axis.errorbar(value, places, xerr=None if published else margins, label=label, **style)
        axis.set_yticks(range(len(rows)), rows)
        axis.set_ylim(-0.5, len(rows) - 0.5)
        axis.set_xlabel(f"{measure}, {summary}, %")
        axis.grid(alpha=0.3)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="small")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
