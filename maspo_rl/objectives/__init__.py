"""Objectives, one file each; `catalogue` finds them, `build` makes one from its name and hyper-parameters."""

from __future__ import annotations

import functools
import sys
from typing import Any

from maspo_rl import registry
from maspo_rl.objectives.base import Objective


@functools.cache
def catalogue() -> dict[str, type[Objective]]:
    """All objectives by name, which is the name of the file."""
    return registry.discover(sys.modules[__name__], Objective)  # type: ignore[type-abstract]


def build(name: str, **fields: Any) -> Objective:
    """The objective `name` with the given hyper-parameters. Raises InputError for an unknown name, field or value."""
    return registry.build("objective", catalogue(), name, fields)
