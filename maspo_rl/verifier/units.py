"""Units of measurement, as far as two answers can contradict each other by them."""

from __future__ import annotations

from fractions import Fraction

_SI = {"n": -9, "u": -6, "µ": -6, "m": -3, "c": -2, "d": -1, "k": 3}
_LONG_PREFIXES = {"nano": -9, "micro": -6, "milli": -3, "centi": -2, "deci": -1, "kilo": 3}


def _table() -> dict[str, tuple[str, Fraction]]:
    """Name to (dimension, factor to that dimension's base unit)."""
    table: dict[str, tuple[str, Fraction]] = {}

    def add(dimension: str, factor: Fraction | int | str, *names: str) -> None:
        for name in names:
            table[name] = (dimension, Fraction(factor))

    for dimension, symbol, names in (
        ("length", "m", ("meter", "metre")),
        ("mass", "g", ("gram", "gramme")),
        ("volume", "l", ("liter", "litre")),
    ):
        add(dimension, 1, symbol, *names)
        for prefix, power in _SI.items():
            add(dimension, Fraction(10) ** power, prefix + symbol)
        for prefix, power in _LONG_PREFIXES.items():
            add(dimension, Fraction(10) ** power, *(prefix + name for name in names))
    add("length", "0.3048", "ft", "foot", "feet")
    add("length", "0.0254", "in", "inch", "inche")
    add("length", "0.9144", "yd", "yard")
    add("length", "1609.344", "mi", "mile")
    add("mass", "453.59237", "lb", "pound")
    add("mass", "28.349523125", "oz", "ounce")
    add("volume", 1000, "kl")
    add("time", 1, "s", "sec", "second")
    add("time", 60, "min", "minute")
    add("time", 3600, "h", "hr", "hour")
    add("time", 86400, "day")
    add("time", 604800, "week", "wk")
    add("money", 1, "dollar", "usd")
    add("money", "0.01", "cent")
    return table


_TABLE = _table()
_SPELLED_SAME = {"mph": "mi/h", "kmh": "km/h", "kph": "km/h", "sq": "", "square": "", "cubic": "", "cu": ""}
_COMMON = frozenset(
    [
        "unit",
        "degree",
        "percent",
        "pct",
        "point",
        "way",
        "student",
        "people",
        "person",
        "child",
        "dollar",
        "cent",
        "apple",
        "ball",
        "coin",
        "th",
        "square",
        "cubic",
        "sq",
        "cu",
        "mph",
        "kmh",
        "kph",
        "hz",
        "khz",
        "mhz",
        "newton",
        "joule",
        "watt",
        "volt",
        "ampere",
        "amp",
        "ohm",
        "kelvin",
        "mol",
        "mole",
        "radian",
        "rad",
        "rpm",
        "bit",
        "byte",
        "minute",
        "acre",
        "gallon",
        "gal",
        "quart",
        "pint",
        "cup",
        "ev",
    ]
)


def singular(word: str) -> str:
    word = word.lower().strip(". ")
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith("ss") else word


def is_unit(word: str) -> bool:
    """Whether a bare word is known to measure or count."""
    one = singular(word)
    return one in _TABLE or one in _COMMON or word.lower() in _TABLE


def _lookup(word: str) -> tuple[str, Fraction] | None:
    return _TABLE.get(word.lower()) or _TABLE.get(singular(word))


def measure(unit: str) -> tuple[dict[str, int], Fraction] | None:
    """Dimensions with exponents, and the factor to base units, of `km/h` or `cm^2`; None if a part is unknown."""
    for name, same in _SPELLED_SAME.items():
        if unit.lower() == name:
            unit = same
    power = 1
    for word, exponent in (("square ", 2), ("sq ", 2), ("sq. ", 2), ("cubic ", 3), ("cu ", 3)):
        if unit.lower().startswith(word):
            unit, power = unit[len(word) :], exponent
    dimensions: dict[str, int] = {}
    factor = Fraction(1)
    unit = unit.replace(" per ", "/").replace("·", " ").replace("*", " ")
    for place, part in enumerate(unit.split("/")):
        for piece in part.split():
            word, _, raised = piece.partition("^")
            known = _lookup(word.strip("."))
            raised = raised.strip("{}") or "1"
            if known is None or not raised.lstrip("-").isdigit() or len(raised) > 2:
                return None
            times = int(raised) * power * (-1 if place else 1)
            dimensions[known[0]] = dimensions.get(known[0], 0) + times
            factor *= known[1] ** times
    if "volume" in dimensions:
        times = dimensions.pop("volume")
        dimensions["length"] = dimensions.get("length", 0) + 3 * times
        factor *= Fraction(1, 1000) ** times
    return ({name: times for name, times in dimensions.items() if times}, factor) if dimensions else None


def conversion(unit: str, gold_unit: str) -> Fraction | None:
    """What to multiply a value in `unit` by to have it in `gold_unit`.

    1 where nothing is known against it (an unknown word, a unit on one side only), None where the two measure
    different things.
    """
    if not unit or not gold_unit or unit.lower() == gold_unit.lower():
        return Fraction(1)
    first, second = measure(unit), measure(gold_unit)
    if first is None or second is None:
        return Fraction(1)
    return first[1] / second[1] if first[0] == second[0] else None
