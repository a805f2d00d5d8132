"""The keys and files that a configuration may name, and the nearest one to a name that is none of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from maspo_rl.config.schema import Config

CONFIGS = Path(__file__).parents[1] / "configs"
"""The directory of YAML files; in a clone a link to the top-level `configs/`."""

GROUPS = ("experiment", "model", "data", "algorithm", "cluster")
"""The groups of files that a command line chooses from: `<group>=<name>` is `configs/<group>/<name>.yaml`."""


def choices(group: str) -> list[str]:
    """The names that `<group>=` takes."""
    return sorted(path.stem for path in (CONFIGS / group).glob("*.yaml"))


def leaves(schema: type = Config, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every dotted key below `schema` that holds a value, with its dataclass field."""
    types = get_type_hints(schema)
    for field in fields(schema):
        if is_dataclass(types[field.name]):
            yield from leaves(types[field.name], f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", field


def open_keys() -> set[str]:
    """The keys that hold a mapping with names of its own, such as an objective's hyper-parameters."""
    return {
        key
        for key, field in leaves()
        if field.default_factory is not MISSING and isinstance(field.default_factory(), dict)
    }


def nearest(name: str, known: Iterable[str]) -> str:
    """`"did you mean <known name>?"`, or what is known where nothing is near."""
    candidates = sorted(known)
    # A bare `lrr` is near to the last part of a dotted key, not to the whole of it.
    tails = {candidate.rpartition(".")[2]: candidate for candidate in reversed(candidates)}
    match = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    if "." not in name:
        match = [tails[tail] for tail in difflib.get_close_matches(name, tails, n=1, cutoff=0.6)] or match
    if match:
        return f"did you mean {match[0]}?"
    return "docs/configuration.md lists all keys" if len(candidates) > 30 else f"known: {', '.join(candidates)}"
