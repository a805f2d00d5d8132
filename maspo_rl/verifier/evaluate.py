"""Equality of expressions by their values, without a computer-algebra system.

What is rational stays a Fraction; everything else is an mpmath number, known at 30 and at 90 digits: a true zero
shrinks with the precision, a small difference does not. Expressions with symbols are compared at fixed sample points
(Schwartz 1980, Zippel 1979: unequal polynomials agree at few points). Sizes are bounded before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import comb, factorial, prod
from typing import Any

import mpmath  # type: ignore[import-untyped]

from maspo_rl.verifier.tree import Node, symbols, walk

MOST_BITS = 100_000
MOST_FACTORIAL = 3_000
_LARGEST_ARGUMENT = 10**15

Number = Any
"""A Fraction, or one of mpmath's real and complex types, which have no annotations of their own."""


class NoNumberError(Exception):
    """The expression is not a number: a set, a word, a symbol without a value."""


class NoValueError(Exception):
    """The expression has no value that could be written out; the message says why."""


class TooLargeError(NoValueError):
    """The value is beyond what is worth writing out (about 30,000 digits)."""


def _context(digits: int) -> Any:
    context = mpmath.mp.clone()
    context.dps = digits
    return context


LOW, HIGH = _context(30), _context(90)


def is_real(value: Number) -> bool:
    return bool(abs(value.imag) <= abs(value.real) * LOW.mpf("1e-25"))


def evaluate(node: Node, context: Any, point: Mapping[str, Number] | None = None) -> Number:
    """The value, symbols taken from `point`: a Fraction where it is rational, else in the precision of `context`.

    Raises NoNumberError and NoValueError.
    """
    if node.op == "number":
        return node.value
    if node.op == "symbol":
        constants = {"i": context.j, "e": +context.e, "\\pi": +context.pi}
        value = constants.get(node.name, (point or {}).get(node.name))
        if value is None:
            raise NoNumberError(node.name)
        return value
    rule = _RULES.get(node.op)
    if rule is None:
        raise NoNumberError(node.op)
    values = [evaluate(part, context, point) for part in node.args]
    if not all(isinstance(value, Fraction) for value in values):
        values = [context.convert(value) for value in values]
    try:
        return rule(context, *values)
    except (ZeroDivisionError, ValueError) as error:
        raise NoValueError(f"{node.op} is undefined here") from error
    except OverflowError as error:
        raise TooLargeError(f"{node.op} of a number this large") from error


def _whole(*values: Number) -> bool:
    return all(isinstance(value, Fraction) and value.denominator == 1 for value in values)


def _power(context: Any, base: Number, exponent: Number) -> Number:
    if base == 0:
        if is_real(exponent) and exponent.real > 0:
            return Fraction(0)
        raise NoValueError("zero to a power that is not positive")
    exact = isinstance(base, Fraction) and _whole(exponent)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length()) if exact else abs(context.log(abs(base), 2))
    if abs(base) != 1 and abs(exponent) * bits > MOST_BITS:
        raise TooLargeError("a power with more digits than are written out")
    return base ** int(exponent) if exact else context.power(base, exponent)


def _root(context: Any, degree: Number, value: Number) -> Number:
    if degree == 2:
        return context.sqrt(value)
    if is_real(degree) and degree.real % 2 == 1 and is_real(value) and value.real < 0:
        return -_power(context, -value.real, 1 / degree)
    return _power(context, value, 1 / degree)


def _floor(context: Any, value: Number, up: int = 1) -> Number:
    if isinstance(value, Fraction):
        return up * Fraction(up * value // 1)
    if not is_real(value):
        raise NoValueError("a real function of a complex number")
    return up * context.floor(up * value.real + context.mpf("1e-20"))


def _factorial(context: Any, value: Number) -> Number:
    if abs(value) > MOST_FACTORIAL:
        raise TooLargeError("a factorial with more digits than are written out")
    return Fraction(factorial(int(value))) if _whole(value) else context.factorial(value)


def _binomial(context: Any, upper: Number, lower: Number) -> Number:
    exact = _whole(upper, lower) and upper >= 0
    if abs(upper) > MOST_FACTORIAL * (10 if exact else 1):
        raise TooLargeError("a binomial coefficient with more digits than are written out")
    return Fraction(comb(int(upper), int(lower))) if exact else context.binomial(upper, lower)


def _logarithm(context: Any, base: Number, value: Number) -> Number:
    if 0 in (base, value):
        raise NoValueError("the logarithm of zero")
    return context.log(value) / context.log(base)


def _function(name: str) -> Callable[..., Number]:
    most = MOST_BITS if name in ("exp", "sinh", "cosh", "tanh") else _LARGEST_ARGUMENT

    def call(context: Any, value: Number) -> Number:
        if abs(value) > most:
            raise TooLargeError(f"{name} of a number this large")
        return getattr(context, name)(context.convert(value))

    return call


_FUNCTIONS = ("exp", "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan", "sinh", "cosh", "tanh")
_RULES: dict[str, Callable[..., Number]] = {
    "neg": lambda _, value: -value,
    "add": lambda _, *values: sum(values, Fraction(0)),
    "mul": lambda _, *values: prod(values, start=Fraction(1)),
    "div": lambda _, dividend, divisor: dividend / divisor,
    "pow": _power,
    "root": _root,
    "abs": lambda _, value: abs(value),
    "floor": _floor,
    "ceil": lambda context, value: _floor(context, value, up=-1),
    "factorial": _factorial,
    "binom": _binomial,
    "percent": lambda _, value: value / 100,
    "degree": lambda context, value: context.convert(value) * context.pi / 180,
    "logarithm": _logarithm,
    "log": lambda context, value: _logarithm(context, context.e, value),
    "ln": lambda context, value: _logarithm(context, context.e, value),
    **{name: _function(name) for name in _FUNCTIONS},
}


def _points(names: frozenset[str]) -> list[dict[str, Fraction]]:
    """Fixed sample points of no special form: four positive, six of mixed signs, then six whole; of moderate size."""
    points = []
    for row in range(16):
        point = {}
        for column, name in enumerate(sorted(names)):
            mixed = (row * 7919 + column * 104729 + 12345) * 2654435761 % 2**32 >> 7
            sign = -1 if 2 <= row < 8 and mixed >> 8 & 1 else 1
            point[name] = Fraction(2 + mixed % 11) if row >= 10 else Fraction(sign * (10 + mixed % 53), 32 - row)
        points.append(point)
    return points


def _vanishes(low: Number, high: Number, scale: Number) -> bool:
    """Whether a difference, known at both precisions, is zero."""
    if isinstance(high, Fraction):
        return high == 0
    size = abs(high)
    return bool(size <= scale * HIGH.mpf("1e-60") or (abs(low) > 0 and size < abs(low) * HIGH.mpf("1e-30")))


def _agree(first: Node, second: Node, point: Mapping[str, Fraction], need_real: bool) -> bool | None:
    """Whether two expressions have one value at a point; None where either is not real and should be."""
    left, right = (evaluate(node, HIGH, point) for node in (first, second))
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left == right
    if need_real and not (is_real(left) and is_real(right)):
        return None
    left, right = HIGH.convert(left), HIGH.convert(right)
    low = LOW.convert(evaluate(first, LOW, point)) - LOW.convert(evaluate(second, LOW, point))
    return _vanishes(low, left - right, max(abs(left), abs(right)))


def equal(first: Node, second: Node) -> bool | None:
    """Whether two expressions are the same function; None when that could not be decided.

    Variables are real: points where either side is not are left out. Raises NoValueError for constants without a value
    or with one too large to write out.
    """
    names = symbols(first) | symbols(second)
    complex_valued = any(part.op == "symbol" and part.name == "i" for part in (*walk(first), *walk(second)))
    agreed = 0
    too_large: TooLargeError | None = None
    try:
        if not names:
            return _agree(first, second, {}, need_real=False)
        for row, point in enumerate(_points(names), start=1):
            try:
                verdict = _agree(first, second, point, need_real=not complex_valued)
            except TooLargeError as error:
                too_large = error
                continue
            except NoValueError:
                continue
            if verdict is False:
                return False
            agreed += verdict is True
            if agreed >= (8 if row < 10 else 4):
                return True
    except NoNumberError:
        return None
    if too_large is not None:
        raise too_large
    return None


def proportional(first: Node, second: Node) -> int | None:
    """The sign of `first / second` where that is one non-zero constant, else None. For equations and inequalities."""
    ratio = Node("div", (first, second))
    ratios: list[tuple[Number, Number]] = []
    for point in _points(symbols(ratio)):
        try:
            low, high = (context.convert(evaluate(ratio, context, point)) for context in (LOW, HIGH))
        except NoValueError:
            continue
        except NoNumberError:
            return None
        if is_real(high):
            ratios.append((low.real, high.real))
    if len(ratios) < 3 or ratios[0][1] == 0:
        return None
    low, high = ratios[0]
    same = all(_vanishes(other_low - low, other - high, abs(high)) for other_low, other in ratios[1:])
    return (1 if high > 0 else -1) if same else None


def same_zeros(first: Node, second: Node) -> bool | None:
    """Whether two equations `first = 0` and `second = 0` have the same real solutions, as far as sampling tells.

    All symbols but one are set to sample values and the last is solved for in each equation: a zero of one that is no
    zero of the other decides; None when too few were found.
    """
    names = symbols(first) | symbols(second)
    agreed = 0
    for unknown in sorted(names)[:2]:
        for point in _points(names)[:4]:
            one, other = (_function_of(node, unknown, point) for node in (first, second))
            for solved, checked in ((one, other), (other, one)):
                try:
                    zero = LOW.findroot(solved, (LOW.convert(point[unknown]), 1.37))
                    residual, shifted = (abs(checked(zero + shift)) for shift in (0, LOW.mpf("0.001")))
                except (ValueError, ZeroDivisionError, NoValueError, NoNumberError):
                    continue
                if is_real(zero) and residual > LOW.mpf("1e-10") * max(1, shifted):
                    return False
                agreed += is_real(zero)
    return True if agreed >= 4 else None


def _function_of(node: Node, unknown: str, point: Mapping[str, Number]) -> Callable[[Number], Number]:
    return lambda value: LOW.convert(evaluate(node, LOW, {**point, unknown: value}))


def constants(nodes: Sequence[Node]) -> list[Fraction] | None:
    """The real values of constant expressions to 80 digits; None if one has none."""
    try:
        values = [evaluate(node, HIGH) for node in nodes]
    except (NoNumberError, NoValueError):
        return None
    if not all(map(is_real, values)):
        return None
    return [value if isinstance(value, Fraction) else Fraction(HIGH.nstr(value.real, 80)) for value in values]
