"""Final answers outside a box: the fallbacks a data set may ask for. Linear scans of the end of the response."""

from __future__ import annotations

import re

TAIL_CHARS = 4000
"""An unboxed answer stands at the end or nowhere."""

_ANCHORS = (
    "final answer is",
    "correct answer is",
    "answer is",
    "answer:",
    "final answer:",
    "答案是",
    "答案为",
    "答案:",
    "答案：",
    "答案应为",
    "答案选",
)
_SENTENCE_END = re.compile(r"[.。!?！？](?=\s|$|\*)|\n")
_CLAUSE_END = re.compile(r",?\s(?:because|since|as|which|where|so|but|and we|for)\s|\s\(")
_MATH_SPAN = re.compile(r"\$\$([^$]+)\$\$|\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_NUMBER_END = re.compile(
    r"(?:is|are|equals|it's|that's|be|为|是)\s*:?\s*(?P<number>[-+−]?[\d][\d,./]*\s*[^\s\d,.;:]{0,12})\s*[.。]?\s*$"
)
_INTRODUCTION = re.compile(
    r"(?:^|\b(?:is|are|be|equals|get|gives|obtain|have|therefore|thus|hence|so|it's|=|:))\s*$", re.I
)
_WORDS = re.compile(r"[A-Za-z]{2,}")
_MATH_WORDS = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "log",
        "ln",
        "exp",
        "sqrt",
        "pi",
        "frac",
        "cdot",
        "times",
        "le",
        "ge",
        "leq",
        "geq",
        "pm",
        "infty",
        "or",
        "and",
        "mod",
    ]
)
_OPTION = re.compile(r"^\(?\*{0,2}([A-J])\*{0,2}[).:]*$")
_OPTION_INTRODUCTIONS = frozenset(("option", "choice", "answer", "answer:", "is", "is:", "choose", "select"))


def _tail(text: str) -> str:
    return text[-TAIL_CHARS:].replace("**", "")


def _cut(candidate: str) -> str:
    """The answer at the head of what follows an anchor: its mathematics, or its clause."""
    candidate = candidate.lstrip(" :：*为是\t")
    span = _MATH_SPAN.match(candidate)
    end = _SENTENCE_END.search(candidate)
    clause = candidate[: end.start()] if end else candidate
    if span is not None and span.end() > len(clause):
        clause = candidate[: span.end()]
    stop = _CLAUSE_END.search(clause)
    clause = clause[: stop.start()] if stop else clause
    return clause.strip(" \t*\"'`")


def answer_is(text: str) -> str | None:
    """What follows the last "the answer is", unless that denies an answer."""
    tail = _tail(text)
    lowered = tail.lower()
    found = max(
        ((lowered.rfind(anchor), anchor) for anchor in _ANCHORS),
        key=lambda pair: (pair[0] + len(pair[1])) * (pair[0] >= 0),
    )
    position, anchor = found
    if position < 0:
        return None
    candidate = tail[position + len(anchor) :].lstrip(" :\n\t*")
    if candidate.lower().startswith(("not ", "n't", "unknown", "unclear")):
        return None
    return _cut(candidate) or None


def gsm8k_hash(text: str) -> str | None:
    """GSM8K's last line that begins with `####`."""
    for line in reversed(_tail(text).splitlines()):
        if line.lstrip().startswith("####"):
            return line.lstrip().removeprefix("####").strip(" \t.:") or None
    return None


def multiple_choice(text: str) -> str | None:
    """The option letter that ends the last line, in brackets or introduced by a word such as `option`."""
    lines = _tail(text).split("\n")
    words = next((line.split() for line in reversed(lines) if line.strip()), [])
    for index in range(len(words) - 1, -1, -1):
        match = _OPTION.match(words[index])
        if match is None:
            continue
        bracketed = words[index].startswith("(")
        introduced = index > 0 and words[index - 1].lower() in _OPTION_INTRODUCTIONS
        if bracketed or introduced or len(words) == 1:
            return match.group(1)
    return None


def _has_words(text: str) -> bool:
    return any(word.lower() not in _MATH_WORDS for word in _WORDS.findall(text))


def closing_math(text: str) -> str | None:
    """Mathematics that ends the response: alone on its last line, or introduced by "is" and the like."""
    tail = _tail(text).strip()
    line = tail.rsplit("\n", 1)[-1].strip() if not tail.endswith(("$$", "\\]")) else tail
    spans = list(_MATH_SPAN.finditer(line))
    if spans:
        last = spans[-1]
        after = line[last.end() :].strip(" .。")
        content = next(group for group in last.groups() if group is not None)
        introduced = _INTRODUCTION.search(line[: last.start()].lower().strip())
        if len(after.split()) <= 1 and introduced is not None:
            return f"{content} {after}".strip()
        return None
    number = _NUMBER_END.search(line)
    if number is not None:
        return number.group("number").strip()
    if "\n" not in tail and len(tail) <= 200 and not _has_words(tail):
        return tail or None
    return None
