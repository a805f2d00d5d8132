"""Times of day: `4:30 p.m.`, `4:30 \\text{ PM}`, `16:30`, `4 p.m.`."""

from __future__ import annotations

import re

_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?P<rest>(?:\s*:\s*[0-5]\d){0,2})(?:\s*(?P<text>\\text\{)?\s*(?P<half>[ap])(?P<dot>\s?\.)?\s?m)?"
    r"\s*\.?\s*\}?",
    re.ASCII | re.IGNORECASE,
)
_HALF_DAY_S = 12 * 3600


def names_its_half(text: str) -> bool:
    """Whether a normalised text says a.m. or p.m. past doubt: `2am` alone may be a product of letters."""
    match = _TIME.fullmatch(text)
    return match is not None and match["half"] is not None and bool(match["rest"] or match["dot"] or match["text"])


def same_time(answer: str, gold: str) -> bool | None:
    """Whether two normalised texts are one time of day; None where neither says a.m. or p.m.: `4:30` is also a ratio.

    The half of the day on one side only is dressing, as a unit is; an hour past 12 tells it as well.
    """
    if not (names_its_half(answer) or names_its_half(gold)):
        return None
    return not _moments(answer).isdisjoint(_moments(gold))


def _moments(text: str) -> frozenset[int]:
    """The seconds after midnight that a text may stand for: none, one, or one in each half of the day."""
    match = _TIME.fullmatch(text)
    if match is None:
        return frozenset()
    hour, (minute, second) = int(match["hour"]), ([int(part) for part in match["rest"].split(":")[1:]] + [0, 0])[:2]
    past = 60 * minute + second
    if 1 <= hour <= 12:
        morning = hour % 12 * 3600 + past
        halves = {"a": (0,), "p": (_HALF_DAY_S,)}.get((match["half"] or "").lower(), (0, _HALF_DAY_S))
        return frozenset(morning + half for half in halves)
    return frozenset((hour * 3600 + past,)) if hour < 24 and match["rest"] and not match["half"] else frozenset()
