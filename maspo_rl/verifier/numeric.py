"""Values of expressions in floating point of any precision, real or complex, with bounded sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]

from maspo_rl.verifier.expression import Node
from maspo_rl.verifier.rational import MOST_BITS, MOST_FACTORIAL, NotRationalError, TooLargeError, UndefinedError

_LARGEST_ARGUMENT = 10**15

Number = Any
"""mpmath's real and complex types, which have no annotations of their own."""


def _context(digits: int) -> Any:
    context = mpmath.mp.clone()
    context.dps = digits
    return context


LOW, HIGH = _context(30), _context(90)


def numeric(node: Node, context: Any, point: Mapping[str, Fraction]) -> Number:  # noqa: PLR0911, PLR0912
    """The value in `context`'s precision.

    Raises NotRationalError (not a number at all), UndefinedError and TooLargeError.
    """
    if node.op == "number":
        return context.mpf(node.value.numerator) / node.value.denominator
    if node.op == "symbol":
        return _named(node.name, context, point)
    values = [numeric(part, context, point) for part in node.args]
    match node.op:
        case "neg":
            return -values[0]
        case "add":
            return context.fsum(values)
        case "mul":
            return context.fprod(values)
        case "div":
            if values[1] == 0:
                raise UndefinedError("a division by zero")
            return values[0] / values[1]
        case "pow":
            return _power(context, values[0], values[1])
        case "root":
            return _root(context, values[0], values[1])
        case "abs":
            return abs(values[0])
        case "floor" | "ceil":
            nudge = context.mpf(10) ** -20 * (1 if node.op == "floor" else -1)
            return (context.floor if node.op == "floor" else context.ceil)(_real(values[0]) + nudge)
        case "factorial":
            return _gamma_like(context.factorial, values)
        case "binom":
            return _gamma_like(context.binomial, values)
        case "log":
            return _logarithm(context, values)
        case "call":
            return _call(context, node.name, values[0])
    raise NotRationalError(node.op)


def _named(name: str, context: Any, point: Mapping[str, Fraction]) -> Number:
    if name == "i":
        return context.mpc(0, 1)
    if name == "e":
        return +context.e
    if name == "\\pi":
        return +context.pi
    if name not in point:
        raise NotRationalError(name)
    return context.mpf(point[name].numerator) / point[name].denominator


def _real(value: Number) -> Number:
    if not is_real(value):
        raise UndefinedError("a real function of a complex number")
    return value.real


def is_real(value: Number) -> bool:
    return bool(abs(value.imag) <= abs(value.real) * mpmath.mpf(10) ** -25)


def _power(context: Any, base: Number, exponent: Number) -> Number:
    if base == 0:
        if is_real(exponent) and exponent.real > 0:
            return context.mpf(0)
        raise UndefinedError("zero to a power that is not positive")
    if abs(exponent) * abs(context.log(abs(base), 2)) > MOST_BITS:
        raise TooLargeError("a power with more digits than are written out")
    return context.power(base, exponent)


def _root(context: Any, degree: Number, value: Number) -> Number:
    if degree == 2:
        return context.sqrt(value)
    if degree == 0:
        raise UndefinedError("a root of degree zero")
    odd = is_real(degree) and degree.real == int(degree.real) and int(degree.real) % 2 == 1
    if odd and is_real(value) and value.real < 0:
        return -_power(context, -value.real, 1 / degree)
    return _power(context, value, 1 / degree)


def _gamma_like(function: Callable[..., Number], values: list[Number]) -> Number:
    if any(abs(value) > MOST_FACTORIAL for value in values):
        raise TooLargeError("a factorial with more digits than are written out")
    try:
        return function(*values)
    except ValueError as error:
        raise UndefinedError("a factorial at a pole") from error


def _logarithm(context: Any, values: list[Number]) -> Number:
    if any(value == 0 for value in values):
        raise UndefinedError("the logarithm of zero")
    if len(values) == 1:
        return context.log(values[0])
    if values[0] == 1:
        raise UndefinedError("a logarithm to base 1")
    return context.log(values[1]) / context.log(values[0])


_CALLS: dict[str, str] = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "ln": "log", "exp": "exp", "sin": "sin", "cos": "cos",
    "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc", "asin": "asin", "acos": "acos", "atan": "atan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
}  # fmt: skip


def _call(context: Any, name: str, value: Number) -> Number:
    grows = name in ("exp", "sinh", "cosh", "tanh")
    if abs(value) > (MOST_BITS if grows else _LARGEST_ARGUMENT):
        raise TooLargeError(f"{name} of a number this large")
    if name == "ln" and value == 0:
        raise UndefinedError("the logarithm of zero")
    try:
        return getattr(context, _CALLS[name])(value)
    except (ZeroDivisionError, ValueError) as error:
        raise UndefinedError(f"{name} at a pole") from error
