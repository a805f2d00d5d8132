"""The embedded arithmetic set: procedural problems in five levels, seeded, with held-out problems set apart by a hash.

The split is a property of the problem itself, so no seed, level mix or size can move a held-out problem into
training. Problems that differ only by the order of a sum or product share their split: `47 + 38` cannot give away a
held-out `38 + 47`.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Split = Literal["train", "heldout"]

LEVELS: dict[int, str] = {
    1: "one-digit sums and differences",
    2: "two-digit sums and differences",
    3: "three-digit sums and differences",
    4: "two digits times one digit",
    5: "a two-digit sum or difference times one digit",
}
"""What each level asks. Every answer is an integer that is not negative."""

HELDOUT_SHARE = 0.1
"""The share of problems whose hash puts them into the held-out split."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem as a person reads it (`47 + 38 = ?`) and its answer in decimal digits."""

    text: str
    gold: str
    level: int
    split: Split


def hashed_split(key: str, heldout_share: float) -> Split:
    """The split that the SHA-256 of `key` decides, whatever the data around it."""
    value = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")
    return "heldout" if value < heldout_share * 2**64 else "train"


def _integer(generator: random.Random, low: int, high: int) -> int:
    """Uniform in low..high. From `random()`, the one draw whose sequence Python guarantees across versions."""
    return low + int(generator.random() * (high - low + 1))


def _pair(generator: random.Random, low: int, high: int) -> tuple[str, str, int]:
    """Text, order-free key and value of one sum or difference with operands in low..high."""
    first, second = _integer(generator, low, high), _integer(generator, low, high)
    larger, smaller = max(first, second), min(first, second)
    if generator.random() < 0.5:
        return f"{first} + {second}", f"{smaller} + {larger}", first + second
    return f"{larger} - {smaller}", f"{larger} - {smaller}", larger - smaller


def draw(level: int, generator: random.Random) -> Problem:
    """One random problem of a level, of either split; advances `generator`.

    Raises KeyError for a level that is not in `LEVELS`.
    """
    if level in (1, 2, 3):
        expression, key, value = _pair(generator, 10 ** (level - 1) if level > 1 else 0, 10**level - 1)
    elif level == 4:
        first, second = _integer(generator, 10, 99), _integer(generator, 2, 9)
        key, value = f"{first} * {second}", first * second
        expression = key if generator.random() < 0.5 else f"{second} * {first}"
    elif level == 5:
        inner, inner_key, inner_value = _pair(generator, 10, 99)
        factor = _integer(generator, 2, 9)
        expression, key, value = f"({inner}) * {factor}", f"({inner_key}) * {factor}", inner_value * factor
    else:
        raise KeyError(level)
    return Problem(f"{expression} = ?", str(value), level, hashed_split(key, HELDOUT_SHARE))


def stream(levels: Sequence[int], split: Split, seed: int) -> Iterator[Problem]:
    """Problems of one split without end, levels in equal shares, repeats allowed. Same arguments, same problems."""
    generator = random.Random(f"{split} {seed}")
    while True:
        problem = draw(levels[_integer(generator, 0, len(levels) - 1)], generator)
        if problem.split == split:
            yield problem


def distinct(levels: Sequence[int], split: Split, seed: int, size: int) -> list[Problem]:
    """`size` different problems, in the order in which `stream` first gives them; fewer where the levels hold fewer.

    The search ends after 1,000 draws in a row that were all seen before.
    """
    found: dict[str, Problem] = {}
    repeats = 0
    for problem in stream(levels, split, seed):
        if len(found) >= size or repeats >= 1000:
            break
        repeats = repeats + 1 if problem.text in found else 0
        found.setdefault(problem.text, problem)
    return list(found.values())
