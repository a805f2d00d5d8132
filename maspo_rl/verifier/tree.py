"""What an answer is made of, and the plain numbers that most answers are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from maspo_rl.verifier.tokens import BeyondLimitsError

LONG_DIGITS = 400
_LARGEST_EXPONENT = 100_000
_ROUNDED_DIGITS = 6
_FLOAT_DIGITS = 15
_PLAIN = re.compile(
    r"\s*[+-]?\s*(?:(?:\d+|[1-9]\d{0,2}(?:,\d{3})+)\.?\d*|\.\d+|\d+\s*/\s*\d+|\\frac\{\d+\}\{\d+\})\s*", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an answer.

    `op`, for expressions: number, symbol, add, mul, div, neg, pow, root (degree, radicand), abs, floor, ceil,
    factorial, binom, logarithm (base, argument), percent, degree, or a function's name; pm and mp only while reading.
    For what is more than an expression: unit (`name`), word (`name`), based (a numeral with its base, `name`), list,
    tuple, set, row, matrix (of rows), ratio, union, interval (`name` holds its two brackets), relation (`name` holds
    the operators, separated by spaces).

    A number may be a `quotient` (`name`). Of a decimal literal, `decimals` counts the digits after the point, and
    `place` is the value of the last digit.
    """

    op: str
    args: tuple[Node, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)
    decimals: int = 0
    place: Fraction = Fraction(0)


INFINITY = Node("symbol", name="\\infty")
MINUS_INFINITY = Node("neg", (INFINITY,))
EMPTY_SET = Node("set")
ALL_REALS = Node("interval", (MINUS_INFINITY, INFINITY), "()")


def walk(node: Node) -> Iterator[Node]:
    """All nodes of a tree."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(current.args)


def symbols(node: Node) -> frozenset[str]:
    """Names of the free symbols: `i`, `e` and `\\pi` are constants."""
    return frozenset(part.name for part in walk(node) if part.op == "symbol") - {"i", "e", "\\pi"}


def constant(value: Fraction | int) -> Node:
    return Node("number", value=Fraction(value))


def number(literal: str) -> Node:
    """A literal such as `12`, `.5`, `4.5e33`, `0.1(36)`. Raises BeyondLimitsError for one too long to write out."""
    mantissa, _, exponent = literal.lower().partition("e")
    mantissa, _, period = mantissa.rstrip(")").partition("(")
    if len(exponent) > 8 or abs(int(exponent or "0")) > _LARGEST_EXPONENT or len(mantissa) > 4000:
        raise BeyondLimitsError("a number too long to write out")
    whole, _, fraction = mantissa.partition(".")
    place = Fraction(10) ** (int(exponent or "0") - len(fraction))
    value = int(whole + fraction or "0") * place
    if period:
        return constant(value + Fraction(int(period), 10 ** len(fraction) * (10 ** len(period) - 1)))
    return Node("number", value=value, decimals=len(fraction), place=place if fraction or exponent else Fraction(0))


def plain_number(text: str) -> Node | None:
    """An integer, decimal or quotient of integers (`a/b`, `\\frac{a}{b}`) of moderate length; None for all else."""
    if len(text) > LONG_DIGITS or _PLAIN.fullmatch(text) is None:
        return None
    digits = text.replace("\\frac{", "").replace("}{", "/").strip(" }+\n\t").replace(",", "")
    dividend, _, divisor = digits.removeprefix("-").partition("/")
    node = number(dividend.strip())
    sign = -1 if digits.startswith("-") else 1
    if divisor:
        return Node("number", name="quotient", value=sign * node.value / int(divisor)) if int(divisor) else None
    return Node("number", value=sign * node.value, decimals=node.decimals, place=node.place)


def rounds_to(decimal: Node, other: Node, exact: Fraction) -> bool:
    """Whether a decimal literal is `other`, of value `exact`, rounded to its last place.

    Asked only of six decimals and six significant digits or more, and never between two decimals, except where one has
    the 15 digits of a float: 0.30000000000000004 is 0.3.
    """
    if decimal.op != "number" or not decimal.place or not decimal.value:
        return False
    significant = len(str(abs(decimal.value) // decimal.place))
    if min(decimal.decimals, significant) < _ROUNDED_DIGITS:
        return False
    if other.op == "number" and not other.name and (significant < _FLOAT_DIGITS or other.decimals >= decimal.decimals):
        return False
    return abs(exact - decimal.value) <= max(decimal.place / 2, abs(exact) / 10**14)


def spelt(node: Node) -> str:
    """The left side of a definition as a name; empty for an expression to evaluate."""
    if node.op in ("symbol", "word"):
        return "" if node.name in ("e", "\\pi", "\\infty") else node.name
    joint = {"mul": "", "abs": "", "ratio": ":", "tuple": ","}.get(node.op)
    names = [spelt(part) for part in node.args] if joint is not None else []
    if joint is None or not all(names):
        return ""
    around = {"abs": "||", "tuple": "()"}.get(node.op, "")
    return around[:1] + joint.join(names) + around[1:]


def named(node: Node) -> tuple[str, Node] | None:
    """Name and value of `x = 5`, `5 = x`, `f(x) = 2x`, `(x, y) = (1, 2)`; None for anything else."""
    if node.op != "relation" or node.name.split()[0] not in ("=", "~="):
        return None
    (first, *sides), operators = node.args, node.name.split()[1:]
    if name := spelt(first):
        value = Node("relation", tuple(sides), " ".join(operators)) if operators else sides[0]
        return (name, value) if set(operators) <= {"="} else None
    turned = "" if operators or symbols(first) else spelt(sides[0])
    return (turned, first) if turned else None
