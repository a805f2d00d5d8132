"""Equality of expressions by their values, without a computer-algebra system.

What is rational stays exact; everything else is an mpmath number, known at 30 and at 90 digits: a true zero shrinks
with the precision, a small difference does not. Expressions with symbols are compared at fixed sample points (Schwartz
1980, Zippel 1979: unequal polynomials agree at few points). Sizes are bounded before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import comb, factorial
from typing import Any

import mpmath  # type: ignore[import-untyped]

from maspo_rl.verifier.reader import Node, symbols, walk

MOST_BITS = 100_000
MOST_FACTORIAL = 3_000
_LARGEST_ARGUMENT = 10**15

Number = Any
"""A Fraction, or one of mpmath's real and complex types, which have no annotations of their own."""


class UndefinedError(Exception):
    """The expression has no value: a division by zero, the logarithm of zero and the like."""


class TooLargeError(Exception):
    """The value is beyond what is worth writing out (about 30,000 digits)."""


class NoNumberError(Exception):
    """The expression is not a number: a set, a word, a symbol without a value."""


def _context(digits: int) -> Any:
    context = mpmath.mp.clone()
    context.dps = digits
    return context


LOW, HIGH = _context(30), _context(90)


def _float(context: Any, value: Number) -> Number:
    return context.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value


def is_real(value: Number) -> bool:
    return isinstance(value, Fraction) or bool(abs(value.imag) <= abs(value.real) * mpmath.mpf(10) ** -25)


def evaluate(node: Node, context: Any, point: Mapping[str, Number] | None = None) -> Number:
    """The value, symbols taken from `point`: a Fraction where it is rational, else in the precision of `context`.

    Raises NoNumberError, UndefinedError and TooLargeError.
    """
    if node.op == "number":
        return node.value
    if node.op == "symbol":
        return _symbol(node.name, context, point or {})
    rule = _RULES.get(node.op)
    if rule is None:
        raise NoNumberError(node.op)
    values = [evaluate(part, context, point) for part in node.args]
    try:
        return rule(context, *values)
    except (ZeroDivisionError, ValueError) as error:
        raise UndefinedError(f"{node.op} has no value here") from error
    except OverflowError as error:
        raise TooLargeError(f"{node.op} of a number this large") from error


def _symbol(name: str, context: Any, point: Mapping[str, Number]) -> Number:
    match name:
        case "i":
            return context.mpc(0, 1)
        case "e":
            return +context.e
        case "\\pi":
            return +context.pi
    if name not in point:
        raise NoNumberError(name)
    return point[name]


def _add(context: Any, *values: Number) -> Number:
    if all(isinstance(value, Fraction) for value in values):
        return sum(values, Fraction(0))
    return context.fsum(_float(context, value) for value in values)


def _multiply(context: Any, *values: Number) -> Number:
    product: Number = Fraction(1)
    for value in values:
        exact = isinstance(product, Fraction) and isinstance(value, Fraction)
        product = product * value if exact else _float(context, product) * _float(context, value)
    return product


def _divide(context: Any, dividend: Number, divisor: Number) -> Number:
    if isinstance(dividend, Fraction) and isinstance(divisor, Fraction):
        return dividend / divisor
    return _float(context, dividend) / _float(context, divisor)


def _power(context: Any, base: Number, exponent: Number) -> Number:
    if base == 0:
        if is_real(exponent) and exponent.real > 0:
            return Fraction(0)
        raise UndefinedError("zero to a power that is not positive")
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(base) != 1 and abs(exponent) * size > MOST_BITS:
            raise TooLargeError("a power with more digits than are written out")
        return base ** int(exponent)
    base, exponent = _float(context, base), _float(context, exponent)
    if abs(exponent) * abs(context.log(abs(base), 2)) > MOST_BITS:
        raise TooLargeError("a power with more digits than are written out")
    return context.power(base, exponent)


def _root(context: Any, degree: Number, value: Number) -> Number:
    if degree == 2:
        return context.sqrt(_float(context, value))
    odd = isinstance(degree, Fraction) and degree.denominator == 1 and degree.numerator % 2 == 1
    if odd and is_real(value) and value.real < 0:
        return -_power(context, -value.real, 1 / degree)
    return _power(context, value, _divide(context, Fraction(1), degree))


def _round(context: Any, value: Number, up: bool) -> Number:
    if isinstance(value, Fraction):
        return Fraction(-(-value // 1) if up else value // 1)
    if not is_real(value):
        raise UndefinedError("a real function of a complex number")
    nudge = context.mpf(10) ** -20
    return context.ceil(value.real - nudge) if up else context.floor(value.real + nudge)


def _factorial(context: Any, value: Number) -> Number:
    if abs(value) > MOST_FACTORIAL:
        raise TooLargeError("a factorial with more digits than are written out")
    if isinstance(value, Fraction) and value.denominator == 1:
        return Fraction(factorial(int(value)))
    return context.factorial(_float(context, value))


def _binomial(context: Any, upper: Number, lower: Number) -> Number:
    whole = isinstance(upper, Fraction) and isinstance(lower, Fraction) and upper.denominator == lower.denominator == 1
    if abs(upper) > MOST_FACTORIAL * (10 if whole else 1):
        raise TooLargeError("a binomial coefficient with more digits than are written out")
    if whole and upper >= 0:
        return Fraction(comb(int(upper), int(lower)))
    return context.binomial(_float(context, upper), _float(context, lower))


def _logarithm(context: Any, base: Number, value: Number) -> Number:
    base, value = _float(context, base), _float(context, value)
    if base in (0, 1) or value == 0:
        raise UndefinedError("a logarithm to base 1, or of zero")
    return context.log(value) / context.log(base)


def _function(name: str) -> Callable[..., Number]:
    most = MOST_BITS if name in ("exp", "sinh", "cosh", "tanh") else _LARGEST_ARGUMENT

    def call(context: Any, value: Number) -> Number:
        if abs(value) > most and name != "log":
            raise TooLargeError(f"{name} of a number this large")
        if name == "log" and value == 0:
            raise UndefinedError("the logarithm of zero")
        return getattr(context, name)(_float(context, value))

    return call


_RULES: dict[str, Callable[..., Number]] = {
    "neg": lambda _, value: -value,
    "add": _add,
    "mul": _multiply,
    "div": _divide,
    "pow": _power,
    "root": _root,
    "abs": lambda _, value: abs(value),
    "floor": lambda context, value: _round(context, value, up=False),
    "ceil": lambda context, value: _round(context, value, up=True),
    "factorial": _factorial,
    "binom": _binomial,
    "percent": lambda context, value: _divide(context, value, Fraction(100)),
    "degree": lambda context, value: _multiply(context, value, context.pi / 180),
    "logarithm": _logarithm,
    "ln": _function("log"),
    **{name: _function(name) for name in ("log", "exp", "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos")},
    **{name: _function(name) for name in ("atan", "sinh", "cosh", "tanh")},
}


def _points(names: frozenset[str]) -> list[dict[str, Fraction]]:
    """Fixed sample points of no special form: four positive, six of mixed signs, then six whole; of moderate size."""
    points = []
    for row in range(16):
        point = {}
        for column, name in enumerate(sorted(names)):
            mixed = (row * 7919 + column * 104729 + 12345) * 2654435761 % 2**32 >> 7
            if row >= 10:
                point[name] = Fraction(2 + mixed % 11)
            else:
                value = Fraction(10 + mixed % 53, 32 - row)
                point[name] = -value if 2 <= row < 8 and mixed >> 8 & 1 else value
        points.append(point)
    return points


def _vanishes(low: Number, high: Number, scale: Number) -> bool:
    """Whether a difference, known at both precisions, is zero."""
    if isinstance(high, Fraction):
        return high == 0
    size = abs(high)
    return bool(size <= scale * HIGH.mpf(10) ** -60 or (abs(low) > 0 and size < abs(low) * HIGH.mpf(10) ** -30))


def _agree(first: Node, second: Node, point: Mapping[str, Number], need_real: bool) -> bool | None:
    """Whether two expressions have one value at a point; None where either is not real and should be."""
    high = [evaluate(node, HIGH, point) for node in (first, second)]
    if all(isinstance(value, Fraction) for value in high):
        return bool(high[0] == high[1])
    if need_real and not all(is_real(value) for value in high):
        return None
    low = [_float(LOW, evaluate(node, LOW, point)) for node in (first, second)]
    high = [_float(HIGH, value) for value in high]
    return _vanishes(low[0] - low[1], high[0] - high[1], max(map(abs, high)))


def equal(first: Node, second: Node) -> bool | None:
    """Whether two expressions are the same function; None when that could not be decided.

    Variables are real: points where either side is not are left out. Raises UndefinedError and TooLargeError for
    constants without a value or with one too large to write out.
    """
    names = symbols(first) | symbols(second)
    agreed = 0
    trouble: Exception | None = None
    try:
        if not names:
            return _agree(first, second, {}, need_real=False)
        complex_valued = any(part.op == "symbol" and part.name == "i" for part in (*walk(first), *walk(second)))
        for row, point in enumerate(_points(names), start=1):
            try:
                verdict = _agree(first, second, point, need_real=not complex_valued)
            except (UndefinedError, TooLargeError) as error:
                trouble = error
                continue
            if verdict is False:
                return False
            agreed += verdict is True
            if agreed >= (8 if row < 10 else 4):
                return True
    except NoNumberError:
        return None
    if isinstance(trouble, TooLargeError):
        raise trouble
    return None


def proportional(first: Node, second: Node) -> int | None:
    """The sign of `first / second` where that is one non-zero constant, else None. For equations and inequalities."""
    ratios: list[tuple[Number, Number]] = []
    for point in _points(symbols(first) | symbols(second)):
        try:
            ratio = Node("div", (first, second))
            values = [_float(context, evaluate(ratio, context, point)) for context in (LOW, HIGH)]
        except (UndefinedError, TooLargeError):
            continue
        except NoNumberError:
            return None
        if is_real(values[1]):
            ratios.append((values[0].real, values[1].real))
    if len(ratios) < 3 or ratios[0][1] == 0:
        return None
    low, high = ratios[0]
    if all(_vanishes(other_low - low, other - high, abs(high)) for other_low, other in ratios[1:]):
        return 1 if high > 0 else -1
    return None


def same_zeros(first: Node, second: Node) -> bool | None:
    """Whether two equations `first = 0` and `second = 0` have the same real solutions, as far as sampling tells.

    All symbols but one are set to sample values and the last is solved for in each equation: a zero of one that is no
    zero of the other decides; None when too few were found.
    """
    names = symbols(first) | symbols(second)
    agreed = 0
    for unknown in sorted(names)[:2]:
        for point in _points(names)[:4]:
            for one, other in ((first, second), (second, first)):
                try:
                    zero = LOW.findroot(_function_of(one, unknown, point), (_float(LOW, point[unknown]), 1.37))
                    residual, shifted = (
                        abs(_function_of(other, unknown, point)(zero + shift)) for shift in (0, LOW.mpf("0.001"))
                    )
                except (ValueError, ZeroDivisionError, UndefinedError, TooLargeError, NoNumberError):
                    continue
                if not is_real(zero):
                    continue
                if residual > LOW.mpf(10) ** -10 * max(1, shifted):
                    return False
                agreed += 1
    return True if agreed >= 4 else None


def _function_of(node: Node, unknown: str, point: Mapping[str, Number]) -> Callable[[Number], Number]:
    return lambda value: _float(LOW, evaluate(node, LOW, {**point, unknown: value}))


def constants(nodes: Sequence[Node]) -> list[Number] | None:
    """The real values of constant expressions at high precision; None if one has none."""
    try:
        values = [evaluate(node, HIGH) for node in nodes]
    except (NoNumberError, UndefinedError, TooLargeError):
        return None
    return [_float(HIGH, value).real for value in values] if all(is_real(value) for value in values) else None
