"""Final answers outside a box: the fallbacks a data set may ask for. Linear scans of the end of the response."""

from __future__ import annotations

import re

TAIL_CHARS = 4000
"""An unboxed answer stands at the end or nowhere."""

_ANCHORS = (
    "final answer is", "correct answer is", "answer is", "answer:", "final answer:", "答案是", "答案为", "答案:",
    "答案：", "答案应为", "答案选", "故选",
)  # fmt: skip
_DENIALS = ("not ", "n't", "unknown", "unclear")
_SPECIAL_TOKEN = re.compile(r"<\|[a-z_]{1,30}\|>")
_DRESS = ("**", "<answer>", "</answer>", "I hope it is correct.")
_SENTENCE_END = re.compile(r"[.。!?！？](?=\s|$|\*)|\n")
_CLAUSE_END = re.compile(r",?\s(?:because|since|as|which|where|so|but|and we|for)\s|\s\(")
_SENTENCE = re.compile(r"[A-Z][a-z]+ .* (?:is|are) (?=\S)")
_MATH_SPAN = re.compile(r"\$\$([^$]+)\$\$|\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_NUMBER_END = re.compile(
    r"(?:\b(?:is|are|be|by|but|equals)|it's|that's|为|是)\s*:?\s*"
    r"(?P<number>(?:\\?[$€£])?[-+−]?\d[\d,./]*\s*[^\s\d,.;:]{0,12})\s*[.。]?\s*$"
)
_NEGATION = re.compile(r"(?:\bnot|\bcannot|\bnever|n't)\s+$")
_DENIED = re.compile(r"(?:\bnot|\bcannot|\bnever|n't)(?: be)?$")
_INTRODUCTION = re.compile(
    r"(?:^|\b(?:is|are|be|equals|get|gives|obtain|have|that|answer|therefore|thus|hence|so|it's)|=|:)\s*$"
)
_CONCLUSION = re.compile(r"\s*is (?:the|our) (?:final )?(?:solution|answer)$")
_QUANTITY = re.compile(r"[-+−$€£\\]{0,3}\d[\d,./ ]*\s*[^\d\s]{0,12}(?: [a-z]{1,12})?")
_WORDS = re.compile(r"[A-Za-z]{2,}")
_MATH_NAMES = "sin cos tan cot sec csc log ln exp sqrt pi frac cdot times le ge leq geq pm infty or and mod"
_MATH_WORDS = frozenset(_MATH_NAMES.split())
_LONE_OPTION = re.compile(r"(?P<letter>[A-J])[).:]*")
_OPTION = re.compile(
    r"(?<!\S)(?:\(|(?i:option|choice|answer|answer:|is|is:|choose|select)\s+\(?)(?P<letter>[A-J])[).:]*(?!\S)"
)


def _tail(text: str) -> str:
    tail = text[-TAIL_CHARS:]
    marker = _SPECIAL_TOKEN.search(tail)
    tail = tail[: marker.start()] if marker else tail
    for dress in _DRESS:
        tail = tail.replace(dress, "")
    return tail


def _cut(candidate: str) -> str:
    """The answer at the head of what follows an anchor: its mathematics, or its clause."""
    candidate = candidate.lstrip(" :：*为是\t")
    span = _MATH_SPAN.match(candidate)
    end = _SENTENCE_END.search(candidate)
    clause = candidate[: end.start()] if end else candidate
    if span is not None and span.end() > len(clause):
        clause = candidate[: span.end()]
    sentence = _SENTENCE.match(clause)
    if sentence is not None:
        clause = clause[sentence.end() :]
    stop = _CLAUSE_END.search(clause)
    clause = clause[: stop.start()] if stop else clause
    return clause.strip(" \t*\"'`")


def answer_is(text: str) -> str | None:
    """What follows the last "the answer is", unless that denies an answer."""
    tail = _tail(text)
    lowered = tail.lower()
    end = max(lowered.rfind(anchor) + len(anchor) if anchor in lowered else -1 for anchor in _ANCHORS)
    if end < 0:
        return None
    candidate = tail[end:].lstrip(" :\n\t*")
    if candidate.lower().startswith(_DENIALS):
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
    line = _tail(text).strip().rpartition("\n")[2].strip()
    found = _LONE_OPTION.fullmatch(line) or next(reversed(list(_OPTION.finditer(line))), None)
    return found["letter"] if found else None


def closing_math(text: str) -> str | None:
    """Mathematics that ends the response: alone on its last line, or introduced by "is" and the like."""
    tail = _tail(text).strip()
    block = tail.endswith(("$$", "\\]"))
    line = tail if block else tail.rsplit("\n", 1)[-1].strip()
    return _last_span(line) or _last_number(line) or (tail if "\n" not in tail and _is_bare(tail) else None)


def _last_span(line: str) -> str | None:
    spans = list(_MATH_SPAN.finditer(line))
    if not spans:
        return None
    last = spans[-1]
    after = _CONCLUSION.sub("", line[last.end() :].strip(" .。"))
    before = line[: last.start()].lower().strip()
    if len(after.split()) > 1 or _INTRODUCTION.search(before) is None or _DENIED.search(before):
        return None
    content = next(group for group in last.groups() if group is not None)
    return f"{content} {after}".strip() or None


def _last_number(line: str) -> str | None:
    number = _NUMBER_END.search(line)
    if number is None or _NEGATION.search(line[max(0, number.start() - 12) : number.start()]):
        return None
    return number.group("number").strip()


def _is_bare(text: str) -> bool:
    """Whether a text is mathematics, or one quantity, and nothing else."""
    if not text or len(text) > 200:
        return False
    return bool(_QUANTITY.fullmatch(text)) or all(word.lower() in _MATH_WORDS for word in _WORDS.findall(text))
