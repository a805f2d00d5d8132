"""Plug-in dataclasses: one per module of a package, found by looking, built from user input with clear errors."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import math
import pkgutil
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union

from maspo_rl.config.errors import InputError

Plugin = TypeVar("Plugin")


def discover(package: types.ModuleType, base: type[Plugin]) -> dict[str, type[Plugin]]:
    """The concrete subclass of `base` that each module of `package` defines, by module name; modules without one are
    left out. A second one in the same module is a programming error (RuntimeError)."""
    found: dict[str, type[Plugin]] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        for member in vars(module).values():
            concrete = inspect.isclass(member) and issubclass(member, base) and not inspect.isabstract(member)
            if concrete and member.__module__ == module.__name__:
                if module_info.name in found:
                    raise RuntimeError(f"{module.__name__} defines two of {base.__name__}: one a file")
                found[module_info.name] = member
    return found


def build(kind: str, known: Mapping[str, type[Plugin]], name: str, fields: Mapping[str, Any]) -> Plugin:
    """An instance of `known[name]`. Raises InputError for a name, a field or a value that is not known, naming the
    nearest that is. `kind` is the word for the user ("objective")."""
    if name not in known:
        raise InputError(f"{kind} {name!r} is not known; {nearest(name, known)}")
    plugin = known[name]
    allowed = {field.name for field in dataclasses.fields(plugin) if field.init}  # type: ignore[arg-type]
    hints = typing.get_type_hints(plugin)
    values = {}
    for field, value in fields.items():
        if field not in allowed:
            remedy = nearest(field, allowed) if allowed else "it takes none"
            raise InputError(f"{kind} {name} has no parameter {field!r}; {remedy}")
        values[field] = _typed(f"{kind} {name}: {field}", value, hints[field])
    return plugin(**values)


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the known word most like `word`, and all of them."""
    words = sorted(known)
    match = difflib.get_close_matches(word, words, n=1, cutoff=0.0)[0]
    return f"did you mean {match!r}? (known: {', '.join(words)})"


def require(condition: bool, name: str, value: object, rule: str) -> None:
    """Raise InputError naming the value and the rule, unless the condition holds."""
    if not condition:
        raise InputError(f"{name}={value!r}: {rule}")


def _typed(label: str, value: Any, hint: Any) -> Any:
    options = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    for option in options:
        if typing.get_origin(option) is Literal:
            if value in typing.get_args(option):
                return value
        elif option is float and isinstance(value, int | float) and not isinstance(value, bool):
            if math.isfinite(value):
                return float(value)
        elif type(value) is option:
            return value
    wanted = " or ".join(_readable(option) for option in options)
    raise InputError(f"{label}={value!r}: must be {wanted}")


def _readable(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return " or ".join(repr(choice) for choice in typing.get_args(hint))
    return {float: "a finite number", int: "a whole number", bool: "true or false", type(None): "null"}.get(
        hint, "text"
    )
