"""The kinds of answers there are."""

from __future__ import annotations

from dataclasses import dataclass

from maspo_rl.verifier.expression import Node


@dataclass(frozen=True, slots=True)
class Atom:
    """One expression with the unit or mark it carried: `%`, `deg` or nothing.

    `bare` is what remains when a last letter, `bare_unit`, is read as a unit and not as a variable.
    """

    node: Node
    unit: str = ""
    mark: str = ""
    bare: Node | None = None
    bare_unit: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """Text, compared as text."""

    text: str


@dataclass(frozen=True, slots=True)
class Based:
    """A numeral with its base, `1001_2`: an answer about the notation, so equal only in the same base."""

    digits: str
    base: str


@dataclass(frozen=True, slots=True)
class Many:
    """`kind` list (bare, unordered), set (braces, unordered) or tuple (brackets, ordered)."""

    kind: str
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    low: Value
    high: Value
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True, slots=True)
class Union:
    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """`name = value`: the name a symbol, `f(x)`, a tuple of names, a word; `side` is it as an expression."""

    name: str
    value: Value
    side: Value | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """`sides[0] operators[0] sides[1] ...`, not of the form `name = value`."""

    operators: tuple[str, ...]
    sides: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    rows: tuple[tuple[Value, ...], ...]


Value = Atom | Word | Based | Many | Interval | Union | Named | Relation | Ratio | Matrix
EMPTY_SET = Many("set", ())
INFINITY = Atom(Node("symbol", name="\\infty"))
MINUS_INFINITY = Atom(Node("neg", (INFINITY.node,)))
ALL_REALS = Interval(MINUS_INFINITY, INFINITY, False, False)
