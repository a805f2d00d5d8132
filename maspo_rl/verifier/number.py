"""Plain numbers, compared exactly and in linear time: the path that most judgements take, in the caller's process."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

_DIGITS = frozenset("0123456789")
LONG_DIGITS = 400
"""Up to here a number is a Fraction; longer ones are compared digit by digit (int() is quadratic)."""

ROUNDED_DIGITS = 6
FLOAT_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Number:
    """sign * digits * 10^-decimals / denominator; `digits` and `denominator` without leading zeros, "0" for zero."""

    negative: bool
    digits: str
    decimals: int
    denominator: str = "1"

    @property
    def is_long(self) -> bool:
        return max(len(self.digits), len(self.denominator), self.decimals) > LONG_DIGITS

    def value(self) -> Fraction:
        """Exact. Only for numbers that are not long."""
        magnitude = Fraction(int(self.digits), 10**self.decimals * int(self.denominator))
        return -magnitude if self.negative else magnitude


def _unsigned(text: str) -> tuple[str, int] | None:
    """Digits and number of decimals of `12`, `1.50`, `.5`, `1,234.5`."""
    whole, point, fraction = text.partition(".")
    if point and not fraction and not whole:
        return None
    if "," in whole:
        head, *groups = whole.split(",")
        if not 1 <= len(head) <= 3 or head[0] == "0" or any(len(group) != 3 for group in groups):
            return None
        whole = head + "".join(groups)
    if not _DIGITS.issuperset(whole) or not _DIGITS.issuperset(fraction) or not (whole or fraction):
        return None
    fraction = fraction.rstrip("0")
    return (whole + fraction).lstrip("0") or "0", len(fraction)


def parse_number(text: str) -> Number | None:
    """Read an integer, decimal or quotient of integers (`a/b`, `\\frac{a}{b}`); None if `text` is anything else."""
    text = text.strip()
    negative = text.startswith("-")
    if negative or text.startswith("+"):
        text = text[1:].lstrip()
    denominator = "1"
    if text.startswith("\\frac{") and text.endswith("}"):
        numerator, middle, rest = text[6:-1].partition("}{")
        if not middle or not _DIGITS.issuperset(rest) or not _DIGITS.issuperset(numerator):
            return None
        text, denominator = numerator, rest
    elif "/" in text:
        text, _, denominator = text.partition("/")
        text, denominator = text.rstrip(), denominator.lstrip()
        if not _DIGITS.issuperset(text) or not _DIGITS.issuperset(denominator):
            return None
    denominator = denominator.lstrip("0")
    unsigned = _unsigned(text) if text else None
    if unsigned is None or not denominator:
        return None
    digits, decimals = unsigned
    return Number(negative and digits != "0", digits, decimals, denominator)


def same_number(first: Number, second: Number) -> bool:
    """Exact equality, or one the other's rounded value. Long numbers are equal when written with the same digits."""
    if first.is_long or second.is_long:
        return first == second
    return first.value() == second.value() or _rounds_to(first, second) or _rounds_to(second, first)


def _rounds_to(decimal: Number, other: Number) -> bool:
    """Whether `decimal` is `other` rounded to its last place.

    Asked only of six decimals and six significant digits or more, and never between two decimals, except where one has
    the 15 digits of a float: 0.30000000000000004 is 0.3.
    """
    if min(decimal.decimals, len(decimal.digits)) < ROUNDED_DIGITS or decimal.denominator != "1":
        return False
    if other.denominator == "1" and (len(decimal.digits) < FLOAT_DIGITS or other.decimals >= decimal.decimals):
        return False
    exact, given = other.value(), decimal.value()
    return abs(exact - given) <= max(Fraction(1, 2 * 10**decimal.decimals), abs(exact) / 10**14)
