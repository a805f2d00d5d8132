"""A paper table: the runs behind its rows, how their policies are measured, and what was published."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from omegaconf import MISSING, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from maspo_rl.config.errors import InputError
from maspo_rl.config.keys import CONFIGS, choices, nearest
from maspo_rl.config.schema import Config


@dataclass
class RowConfig:
    """One row: a run for each of the table's seeds."""

    name: str = MISSING
    overrides: list[str] = field(default_factory=list)  # of `maspo-rl train`, after the table's
    against: str | None = None  # the row that differences are taken to; null: the table's baseline


@dataclass
class TableConfig:
    """One file of `configs/table/`."""

    title: str = MISSING
    rows: list[RowConfig] = field(default_factory=list)
    seeds: list[int] = field(default_factory=lambda: [0])
    overrides: list[str] = field(default_factory=list)  # of `maspo-rl train`, for every run
    baseline: str | None = None  # a row's name
    # Names in configs/data with their headings; empty: the evaluation that each run ends with.
    benchmarks: dict[str, str] = field(default_factory=dict)
    evaluation: list[str] = field(default_factory=list)  # of `maspo-rl eval`, where there are benchmarks
    k: int = 8
    measures: list[str] = field(default_factory=lambda: ["avg", "pass"])  # estimators at k
    source: str = ""  # of the published numbers, percent, in the order of `measures`: row -> heading -> numbers
    published: dict[str, dict[str, list[float]]] = field(default_factory=dict)


def load_table(name: str) -> TableConfig:
    """`configs/table/<name>.yaml`. Raises InputError for an unknown name and for a file that is no such table."""
    if name not in choices("table"):
        raise InputError(f"unknown table '{name}': {nearest(name, choices('table'))}")
    path = CONFIGS / "table" / f"{name}.yaml"
    try:
        table = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(TableConfig), OmegaConf.load(path)))
    except OmegaConfBaseException as error:
        raise InputError(f"{path}: {str(error).partition(chr(10))[0]}") from error
    assert isinstance(table, TableConfig)
    names = [row.name for row in table.rows]
    for against in {table.baseline, *(row.against for row in table.rows)} - {None}:
        if against not in names:
            raise InputError(f"{path}: '{against}' is no row's name; {nearest(str(against), names)}")
    return table


def facts(config: Config) -> dict[str, Any]:
    """Everything of a run that may change what comes out of it, by section: all but names, places and reports."""
    left_out = ("run", "resume", "report", "checkpoint", "cluster")
    return {key: value for key, value in asdict(config).items() if key not in left_out}
