"""Values of rational expressions: exact for constants, modulo a large prime for functions.

Sizes are bounded before anything is computed, so a tower of exponents costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from maspo_rl.verifier.expression import Node

PRIMES = (8431292110063180516659135176145217, 98766412460464608290493993609241121243)
MOST_BITS = 100_000
MOST_FACTORIAL = 3_000
_MOST_MODULAR_EXPONENT = 10**15


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
    if base not in (0, 1, -1) and abs(exponent) * size > MOST_BITS:
        raise TooLargeError("a power with more digits than are written out")
    return base ** int(exponent)


def _factorial(value: Fraction) -> int:
    if value.denominator != 1:
        raise NotRationalError("factorial")
    if value < 0:
        raise UndefinedError("the factorial of a negative number")
    if value > MOST_FACTORIAL:
        raise TooLargeError("a factorial with more digits than are written out")
    product = 1
    for factor in range(2, int(value) + 1):
        product *= factor
    return product


def _binomial(upper: Fraction, lower: Fraction) -> Fraction:
    if upper.denominator != 1 or lower.denominator != 1 or lower < 0 or upper < 0:
        raise NotRationalError("binom")
    if upper > 10 * MOST_FACTORIAL or min(lower, upper - lower) > MOST_FACTORIAL:
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
