"""Units of measurement, as far as two answers can contradict each other by them."""

from __future__ import annotations

from fractions import Fraction

_ROWS = """
length 1 1 m meter metre
mass 1 1 g gram gramme
length 3 0.001 l liter litre
length 1 0.3048 ft foot feet
length 1 0.0254 in inch inche
length 1 0.9144 yd yard
length 1 1609.344 mi mile
mass 1 453.59237 lb pound
mass 1 28.349523125 oz ounce
time 1 1 s sec second
time 1 60 min minute
time 1 3600 h hr hour
time 1 86400 day
time 1 604800 week wk
money 1 1 dollar usd
money 1 0.01 cent
"""
"""Dimension, its power, factor to its base unit (metre, gram, second, dollar), names; three with prefixes."""
_PREFIXES = {
    "n": -9, "u": -6, "µ": -6, "m": -3, "c": -2, "d": -1, "k": 3,
    "nano": -9, "micro": -6, "milli": -3, "centi": -2, "deci": -1, "kilo": 3,
}  # fmt: skip
_OTHERS = """
unit degree percent pct point way student people person child apple ball coin th square cubic sq cu mph kmh kph hz khz
mhz newton joule watt volt ampere amp ohm kelvin mol mole radian rad rpm bit byte acre gallon gal quart pint cup ev
"""
_COMMON = frozenset(_OTHERS.split())
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_SPELLED_SAME = {"mph": "mi/h", "kmh": "km/h", "kph": "km/h"}


def _table() -> dict[str, tuple[str, int, Fraction]]:
    table: dict[str, tuple[str, int, Fraction]] = {}
    for row in _ROWS.strip().splitlines():
        dimension, power, factor, *names = row.split()
        for name in names:
            table[name] = (dimension, int(power), Fraction(factor))
            if names[0] in ("m", "g", "l"):
                # A short prefix goes with the symbol, a long one with the name.
                table |= {
                    prefix + name: (dimension, int(power), Fraction(factor) * Fraction(10) ** shift)
                    for prefix, shift in _PREFIXES.items()
                    if (len(prefix) == 1) == (len(name) == 1)
                }
    return table


_TABLE = _table()


def _singular(word: str) -> str:
    word = word.lower().strip(". ")
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word


def is_unit(word: str) -> bool:
    """Whether a bare word is known to measure or count."""
    return _singular(word) in _TABLE or _singular(word) in _COMMON or word.lower() in _TABLE


def measure(unit: str) -> tuple[dict[str, int], Fraction] | None:
    """Dimensions with exponents, and the factor to base units, of `km/h` or `cm^2`; None if a part is unknown."""
    unit = _SPELLED_SAME.get(unit.lower(), unit)
    head, _, rest = unit.partition(" ")
    outer = _POWERS.get(head.lower().strip("."), 1) if rest else 1
    dimensions: dict[str, int] = {}
    factor = Fraction(1)
    for place, part in enumerate((rest if outer > 1 else unit).replace(" per ", "/").replace("*", " ").split("/")):
        for piece in part.split():
            word, _, raised = piece.partition("^")
            raised = raised.strip("{}") or "1"
            known = _TABLE.get(word.strip(".").lower()) or _TABLE.get(_singular(word))
            if known is None or not raised.isdigit() or len(raised) > 2:
                return None
            dimension, power, size = known
            times = int(raised) * outer * (-1 if place else 1)
            dimensions[dimension] = dimensions.get(dimension, 0) + times * power
            factor *= size**times
    return ({name: times for name, times in dimensions.items() if times}, factor) if dimensions else None


def conversion(unit: str, gold_unit: str) -> Fraction | None:
    """What to multiply a value in `unit` by to have it in `gold_unit`.

    1 where nothing is known against it (an unknown word, a unit on one side only), None where the two measure
    different things.
    """
    first, second = measure(unit), measure(gold_unit)
    if first is None or second is None or unit.lower() == gold_unit.lower():
        return Fraction(1)
    return first[1] / second[1] if first[0] == second[0] else None
