"""Equality of expression trees without a computer-algebra system.

Rational functions are compared exactly, by their values modulo two large primes at fixed points (Schwartz 1980,
Zippel 1979: unequal ones of degree d agree at a random point with probability at most d / prime). Everything else is
compared numerically at two precisions: a true zero shrinks with the precision, a small difference does not. Sizes are
bounded before anything is computed, so a tower of exponents costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]

from maspo_rl.verifier.expression import Node, symbols, walk

PRIMES = (8431292110063180516659135176145217, 98766412460464608290493993609241121243)
_MOST_BITS = 100_000
_MOST_FACTORIAL = 3_000
_MOST_MODULAR_EXPONENT = 10**15
_LARGEST_ARGUMENT = 10**15

Number = Any
"""mpmath's real and complex types, which have no annotations of their own."""


class UndefinedError(Exception):
    """The expression has no value: a division by zero, the logarithm of zero and the like."""


class TooLargeError(Exception):
    """The value is beyond what is worth writing out (about 30,000 digits)."""


class NotRationalError(Exception):
    """Not a rational function of its symbols."""


def exact(node: Node) -> Fraction:  # noqa: PLR0911
    """The value of a rational constant. Raises NotRationalError, UndefinedError or TooLargeError."""
    values = [exact(part) for part in node.args]
    match node.op:
        case "number":
            return node.value
        case "neg":
            return -values[0]
        case "add":
            return sum(values, Fraction(0))
        case "mul":
            product = Fraction(1)
            for value in values:
                product *= value
            return product
        case "div":
            if values[1] == 0:
                raise UndefinedError("a division by zero")
            return values[0] / values[1]
        case "pow":
            return _exact_power(values[0], values[1])
        case "factorial":
            return Fraction(_factorial(values[0]))
        case "abs":
            return abs(values[0])
        case "binom":
            return _binomial(values[0], values[1])
    raise NotRationalError(node.op)


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise NotRationalError("pow")
    if base == 0 and exponent <= 0:
        raise UndefinedError("zero to a power that is not positive")
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if base not in (0, 1, -1) and abs(exponent) * size > _MOST_BITS:
        raise TooLargeError("a power with more digits than are written out")
    return base ** int(exponent)


def _factorial(value: Fraction) -> int:
    if value.denominator != 1:
        raise NotRationalError("factorial")
    if value < 0:
        raise UndefinedError("the factorial of a negative number")
    if value > _MOST_FACTORIAL:
        raise TooLargeError("a factorial with more digits than are written out")
    product = 1
    for factor in range(2, int(value) + 1):
        product *= factor
    return product


def _binomial(upper: Fraction, lower: Fraction) -> Fraction:
    if upper.denominator != 1 or lower.denominator != 1 or lower < 0 or upper < 0:
        raise NotRationalError("binom")
    if upper > 10 * _MOST_FACTORIAL or min(lower, upper - lower) > _MOST_FACTORIAL:
        raise TooLargeError("a binomial coefficient with more digits than are written out")
    result = Fraction(1)
    for step in range(int(min(lower, upper - lower)) if lower <= upper else 0):
        result = result * (upper - step) / (step + 1)
    return result if lower <= upper else Fraction(0)


def modular(node: Node, point: Mapping[str, int], prime: int) -> int:  # noqa: PLR0911, PLR0912
    """The value of a rational function modulo `prime`. Raises as `exact`; UndefinedError also for a pole at `point`."""
    match node.op:
        case "number":
            return node.value.numerator * pow(node.value.denominator, -1, prime) % prime
        case "symbol":
            if node.name not in point:
                raise NotRationalError(node.name)
            return point[node.name]
        case "neg":
            return -modular(node.args[0], point, prime) % prime
        case "add":
            return sum(modular(part, point, prime) for part in node.args) % prime
        case "mul":
            product = 1
            for part in node.args:
                product = product * modular(part, point, prime) % prime
            return product
        case "div":
            divisor = modular(node.args[1], point, prime)
            if divisor == 0:
                raise UndefinedError("a division by zero")
            return modular(node.args[0], point, prime) * pow(divisor, -1, prime) % prime
        case "pow":
            exponent = exact(node.args[1])
            if exponent.denominator != 1:
                raise NotRationalError("pow")
            if abs(exponent) > _MOST_MODULAR_EXPONENT:
                raise TooLargeError("a power with more digits than are written out")
            base = modular(node.args[0], point, prime)
            if base == 0 and exponent <= 0:
                raise UndefinedError("zero to a power that is not positive")
            return pow(base, int(exponent), prime)
        case "factorial" | "binom" | "abs":
            value = exact(node)
            return value.numerator * pow(value.denominator, -1, prime) % prime
    raise NotRationalError(node.op)


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
    if abs(exponent) * abs(context.log(abs(base), 2)) > _MOST_BITS:
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
    if any(abs(value) > _MOST_FACTORIAL for value in values):
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
    if abs(value) > (_MOST_BITS if grows else _LARGEST_ARGUMENT):
        raise TooLargeError(f"{name} of a number this large")
    if name == "ln" and value == 0:
        raise UndefinedError("the logarithm of zero")
    try:
        return getattr(context, _CALLS[name])(value)
    except (ZeroDivisionError, ValueError) as error:
        raise UndefinedError(f"{name} at a pole") from error


def _points(names: frozenset[str], integers: bool) -> list[dict[str, Fraction]]:
    """Fixed sample points: four all-positive and six of mixed signs, of moderate size, of no special form."""
    points = []
    for row in range(10):
        point = {}
        for column, name in enumerate(sorted(names)):
            state = (row * 7919 + column * 104729 + 12345) * 2654435761 % 2**32
            state = (state * 1664525 + 1013904223) % 2**32
            if integers:
                point[name] = Fraction(2 + state % 11)
                continue
            value = Fraction(300_000_007 + state % 2_400_000_000, 10**9)
            point[name] = -value if row >= 4 and (state >> 7) % 2 else value
        points.append(point)
    return points


def _modular_equal(first: Node, second: Node) -> bool:
    """Raises NotRationalError, TooLargeError, UndefinedError (no value anywhere)."""
    names = symbols(first) | symbols(second)
    for prime in PRIMES:
        compared = 0
        for row in range(8):
            point = {
                name: pow(1_000_003 + 7 * row + 131 * column, 5 + row, prime)
                for column, name in enumerate(sorted(names))
            }
            try:
                values = modular(first, point, prime), modular(second, point, prime)
            except UndefinedError:
                if not names:
                    raise
                continue
            if values[0] != values[1]:
                return False
            compared += 1
            if compared == 2 or not names:
                break
        if compared == 0:
            raise UndefinedError("no value at any point")
    return True


def _vanishes(low: Number, high: Number, scale: Number) -> bool:
    """Whether a difference, known at both precisions, is zero."""
    size = abs(high)
    return bool(size <= scale * HIGH.mpf(10) ** -60 or (abs(low) > 0 and size < abs(low) * HIGH.mpf(10) ** -30))


def _at(node: Node, point: Mapping[str, Fraction]) -> tuple[Number, Number]:
    return numeric(node, LOW, point), numeric(node, HIGH, point)


def _numeric_equal(first: Node, second: Node) -> bool | None:
    names = symbols(first) | symbols(second)
    if not names:
        (low_a, high_a), (low_b, high_b) = _at(first, {}), _at(second, {})
        return _vanishes(low_a - low_b, high_a - high_b, max(abs(high_a), abs(high_b)))
    complex_answer = any(part.op == "symbol" and part.name == "i" for part in (*walk(first), *walk(second)))
    for integers in (False, True):
        agreed = 0
        for point in _points(names, integers):
            try:
                (low_a, high_a), (low_b, high_b) = _at(first, point), _at(second, point)
            except (UndefinedError, TooLargeError):
                continue
            if not complex_answer and not (is_real(high_a) and is_real(high_b)):
                continue
            if not _vanishes(low_a - low_b, high_a - high_b, max(abs(high_a), abs(high_b))):
                return False
            agreed += 1
        if agreed >= 4:
            return True
    return None


def equal(first: Node, second: Node) -> bool | None:
    """Whether two expressions are the same function; None when that could not be decided.

    Variables are real: points where either side is not are left out. Raises UndefinedError and TooLargeError for
    constants without a value or with one too large to write out.
    """
    try:
        return _modular_equal(first, second)
    except NotRationalError:
        pass
    try:
        return _numeric_equal(first, second)
    except NotRationalError:
        return None


def proportional(first: Node, second: Node) -> int | None:
    """The sign of `first / second` where that is one non-zero constant, else None. For equations and inequalities."""
    names = symbols(first) | symbols(second)
    ratios: list[tuple[Number, Number]] = []
    for point in _points(names, integers=False):
        try:
            (low_a, high_a), (low_b, high_b) = _at(first, point), _at(second, point)
        except (UndefinedError, TooLargeError, NotRationalError):
            continue
        if not (is_real(high_a) and is_real(high_b)) or abs(low_b) < LOW.mpf(10) ** -20:
            continue
        ratios.append((low_a.real / low_b.real, high_a.real / high_b.real))
    if len(ratios) < 3 or abs(ratios[0][1]) < HIGH.mpf(10) ** -20:
        return None
    low, high = ratios[0]
    if all(_vanishes(other_low - low, other - high, abs(high)) for other_low, other in ratios[1:]):
        return 1 if high > 0 else -1
    return None


def same_zeros(first: Node, second: Node) -> bool | None:
    """Whether two equations `first = 0` and `second = 0` have the same real solutions, as far as sampling tells.

    All symbols but one are set to sample values and the last is solved for in each equation: a zero of one that is no
    zero of the other decides; None when no zero was found.
    """
    names = sorted(symbols(first) | symbols(second))
    agreed = 0
    for unknown in names[:2]:
        for point in _points(frozenset(names), integers=False)[:4]:
            for one, other in ((first, second), (second, first)):
                zero = _zero(one, unknown, point)
                if zero is None:
                    continue
                at_zero = point | {unknown: zero}
                try:
                    residual = numeric(other, LOW, at_zero)
                    shifted = numeric(other, LOW, at_zero | {unknown: zero + Fraction(1, 1000)})
                except (UndefinedError, TooLargeError, NotRationalError):
                    continue
                if abs(residual) > LOW.mpf(10) ** -12 * max(1, abs(shifted)):
                    return False
                agreed += 1
    return True if agreed >= 4 else None


def _zero(node: Node, unknown: str, point: Mapping[str, Fraction]) -> Fraction | None:
    """A real zero in `unknown` near its sample value, by the secant method (30 steps)."""

    def value(at: Number) -> Number:
        return numeric(node, LOW, {**point, unknown: Fraction(str(LOW.nstr(at, 30)))})

    left, right = LOW.mpf(point[unknown].numerator) / point[unknown].denominator, LOW.mpf("1.37")
    try:
        at_left, at_right = value(left), value(right)
        for _ in range(30):
            if at_right == 0 or abs(right - left) < LOW.mpf(10) ** -22 * max(1, abs(right)):
                return Fraction(str(LOW.nstr(right, 30)))
            if at_left == at_right or not is_real(at_right):
                return None
            step = at_right.real * (right - left) / (at_right - at_left).real
            left, at_left, right = right, at_right, right - step
            at_right = value(right)
    except (UndefinedError, TooLargeError, NotRationalError, ZeroDivisionError):
        return None
    return None
