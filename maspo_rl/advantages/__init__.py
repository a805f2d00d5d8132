"""Advantage estimators, one file each; `catalogue` finds them, `build` makes one from its name and parameters."""

from __future__ import annotations

import functools
import sys
from typing import Any

from maspo_rl import registry
from maspo_rl.advantages.base import Advantage


@functools.cache
def catalogue() -> dict[str, type[Advantage]]:
    """All estimators by name, which is the name of the file."""
    return registry.discover(sys.modules[__name__], Advantage)  # type: ignore[type-abstract]


def build(name: str, **fields: Any) -> Advantage:
    """The estimator `name` with the given parameters. Raises InputError for an unknown name, field or value."""
    return registry.build("advantage", catalogue(), name, fields)
