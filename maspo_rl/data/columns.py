"""From a row of a data set to a problem and its gold answer, both strings."""

from __future__ import annotations

import difflib
import math
from typing import Any

from maspo_rl.config.data import DataConfig
from maspo_rl.config.errors import InputError


def value_at(row: dict[str, Any], path: str, key: str, source: str) -> Any:
    """The value of a dotted path in a row; a number in it picks an element of a list, `*` joins all of them by commas.

    `key` is the configuration key that holds the path and `source` names file and row, both for the message of the
    InputError that a path leading nowhere raises.
    """
    value: Any = row
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, (list, tuple)) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, (list, tuple)) and part == "*":
            value = ", ".join(map(str, value))
        else:
            raise InputError(f"{key}={path}: no '{part}' in {source}; {_remedy(part, value)}")
    return value


def _remedy(part: str, value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"it holds a list of {len(value)}, pick an element by its number from 0 or join them with *"
    if not isinstance(value, dict):
        return f"it holds {_shown(value)}, end the path before it"
    names = [str(name) for name in value]
    near = difflib.get_close_matches(part, names, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else f"it has {', '.join(names) or 'no columns'}"


def problem_text(row: dict[str, Any], config: DataConfig, source: str) -> str:
    """The problem, without the texts that `config.remove` names; "" where the row has none."""
    value = value_at(row, config.columns.prompt, "data.columns.prompt", source)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"data.columns.prompt={config.columns.prompt}: {source} holds {_shown(value)} there and must hold text; "
            f"for a chat name the turn's text, {config.columns.prompt}.0.content"
        )
    for text in config.remove:
        value = value.replace(text, "")
    return value.strip()


def gold_answer(row: dict[str, Any], config: DataConfig, source: str) -> str:
    """The gold answer as a string: 27.0 is "27"; "" where the row has none, or lacks `config.gold_pattern`.

    Raises InputError for a value that is no single answer, such as a list.
    """
    value = value_at(row, config.columns.gold, "data.columns.gold", source)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(
            f"data.columns.gold={config.columns.gold}: {source} holds {_shown(value)} there and must hold text or a "
            "number; a dotted path leads to a part of it"
        )
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value)
    return (after_pattern(text, config.gold_pattern) if config.gold_pattern else text).strip()


def after_pattern(text: str, pattern: str) -> str:
    """What follows the last `pattern`, "" without one; up to the matching brace if the pattern ends with `{`."""
    _, found, rest = text.rpartition(pattern)
    if not found or not pattern.endswith("{"):
        return rest if found else ""
    depth = 1
    for position, character in enumerate(rest):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return rest[:position]
    return ""


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
