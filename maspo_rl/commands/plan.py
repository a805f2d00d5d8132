"""`maspo-rl plan [overrides] [--gpu NAME] [--json]`: a run checked and explained, nothing of it started."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from maspo_rl.config.errors import InputError
from maspo_rl.planning.plan import Plan, make_plan

_UNITS = {"gib": " GiB", "bytes": "", "s": " s", "h": " h"}


def main(arguments: list[str]) -> int:
    """Prints the plan, or one JSON object with it. 0 when the run can start, 2 with every problem when it cannot."""
    parser = argparse.ArgumentParser(
        prog="maspo-rl plan", allow_abbrev=False, usage="%(prog)s [--gpu NAME] [--json] key=value ..."
    )
    parser.add_argument("--gpu", metavar="NAME", help="A100, H100 or H200: memory and time on it")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of tables")
    options, overrides = parser.parse_known_args(arguments)
    try:
        plan = make_plan(overrides, options.gpu)
    except InputError as problem:
        plan = Plan(problems=str(problem).splitlines())
    if options.json:
        print(json.dumps(asdict(plan), ensure_ascii=False))
        return 2 if plan.problems else 0
    console = Console(highlight=False)
    for name, section in plan.sections.items():
        console.print(_table(name, section), "")
    for warning in plan.warnings:
        console.print(f"warning: {warning}", style="yellow", soft_wrap=True, markup=False)
    if plan.problems:
        raise InputError("\n".join(plan.problems))
    return 0


def _table(name: str, section: dict[str, Any]) -> Table:
    """Two columns; what a part is made of stands behind it on its row."""
    table = Table(title=_words(name), title_justify="left", title_style="bold", box=None, show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in section.items():
        for part, inside in value.items() if isinstance(value, dict) else [("", value)]:
            label = f"{_words(key)}: {_words(part)}" if part else _words(key)
            table.add_row(label, _shown(key if isinstance(inside, dict) or not part else part, inside))
    return table


def _words(key: str) -> str:
    stem, _, unit = key.rpartition("_")
    return (stem if stem and unit in _UNITS else key).replace("_", " ")


def _shown(key: str, value: Any) -> str:
    """A value with the unit that its key ends with; of several their sum, then the parts that can be seen in it."""
    unit = key.rpartition("_")[2]
    if isinstance(value, dict):
        parts = {part: number for part, number in value.items() if part != "total" and number >= 0.01}
        listed = ", ".join(f"{_words(part)} {number:.4g}" for part, number in parts.items())
        return f"{value['total']:.2f}{_UNITS[unit]} ({listed})"
    if isinstance(value, list):
        return "\n".join(value)
    if isinstance(value, str):
        return escape(value.replace("\n", "\\n"))
    if value is None:
        return "not said"
    return decimal(value) if unit == "bytes" else f"{value:,}{_UNITS.get(unit, '')}"
