"""`maspo-rl doctor [overrides] [--json]`: what is installed, what works, and what to do about the rest."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from maspo_rl.config.errors import InputError
from maspo_rl.planning.health import Finding, findings, room
from maspo_rl.planning.plan import Plan, make_plan

_COLOURS = {"ok": "green", "warning": "yellow", "failure": "red"}


def main(arguments: list[str]) -> int:
    """Looks at everything and prints it. 0 when nothing failed, else 1. `overrides` name the run to have room for."""
    parser = argparse.ArgumentParser(
        prog="maspo-rl doctor", allow_abbrev=False, usage="%(prog)s [--json] key=value ..."
    )
    parser.add_argument("--json", action="store_true", help="one JSON object in place of a table")
    options, overrides = parser.parse_known_args(arguments)
    plan, found = Plan(), []
    try:
        plan = make_plan(overrides or ["experiment=quickstart"])
    except ImportError as error:  # told so that the rest can still be looked at
        found.append(Finding("plan", "failure", str(error), "install what is missing"))
    found += room(plan.problems, plan.sections)
    if wrong := [line for line in plan.problems if not line.startswith(("memory:", "run.dir="))]:
        raise InputError("\n".join(wrong))
    with Console(stderr=True).status("looking", spinner="line") as status:
        for finding in findings(plan.sections.get("moved_per_step", {}).get("weights_bytes", 0)):
            found.append(finding)
            status.update(f"{finding.what}: {finding.status}")
    failed = sum(finding.status == "failure" for finding in found)
    if options.json:
        print(json.dumps({"failures": failed, "findings": [asdict(finding) for finding in found]}, ensure_ascii=False))
        return int(failed > 0)
    table = Table("", "", "found", "remedy", box=None, pad_edge=False)
    for finding in found:
        colour = _COLOURS[finding.status]
        table.add_row(f"[{colour}]{finding.status}[/]", *map(escape, (finding.what, finding.found, finding.remedy)))
    Console(highlight=False).print(table)
    return int(failed > 0)
