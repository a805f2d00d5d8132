"""Equality of expression trees without a computer-algebra system.

Rational functions are compared exactly, by their values modulo two large primes at fixed points (Schwartz 1980,
Zippel 1979: unequal ones of degree d agree at a random point with probability at most d / prime). Everything else is
compared numerically at two precisions: a true zero shrinks with the precision, a small difference does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from maspo_rl.verifier.expression import Node, symbols, walk
from maspo_rl.verifier.numeric import HIGH, LOW, Number, is_real, numeric
from maspo_rl.verifier.rational import PRIMES, NotRationalError, TooLargeError, UndefinedError, modular


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
