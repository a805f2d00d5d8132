"""What did the response finally answer, and where? Hand-written scans, linear in the length of the response."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from maspo_rl.verifier import unboxed


@dataclass(frozen=True, slots=True)
class Extraction:
    """`answer` is None when nothing was answered; `source` is the rule that found it; `reason` says why not."""

    answer: str | None
    source: str
    reason: str


_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)
_BOX = re.compile(r"(?:\\|(?<![A-Za-z\\]))(?:boxed|fbox)[ \t\n]*\{|\\(?:boxed|fbox)[ \t\n]*(?P<token>[^\W_]+)")
"""With and without its backslash, which some string escape on the way may have eaten; `\\boxed 7` as TeX reads it."""
_DRESS = re.compile(r"\\(?:text|quad|[ ,()])|[${}]")
_MOST_BETWEEN = 40
_MOST_PARTS = 64
_MOST_NESTED = 8


def final_part(output: str) -> str | None:
    """The text after the last `</think>`; None when thinking was opened and never closed."""
    rest = output.rpartition("</think>")[2]
    return None if "<think>" in rest else rest


def closing_brace(text: str, start: int) -> int:
    """The index of the brace that closes the one at `start`, or -1. Escaped braces do not count."""
    depth = 0
    for match in _BRACES.finditer(text, start):
        depth += (match.group() == "{") - (match.group() == "}")
        if depth == 0:
            return match.start()
    return -1


def _closing_braces(text: str, start: int) -> dict[int, int]:
    """The brace that closes each one from `start` on, in one pass."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACES.finditer(text, start):
        if match.group() == "{":
            opened.append(match.start())
        elif match.group() == "}" and opened:
            closing[opened.pop()] = match.start()
    return closing


def _boxes(text: str) -> list[tuple[int, int, str]]:
    """Start, end and content of the closed outermost boxes that are not empty."""
    found: list[tuple[int, int, str]] = []
    closing: dict[int, int] | None = None
    position = 0
    # From the first box on: str.find is many times as fast as the pattern, and most of a response lies before it.
    first = text.find("box")
    for match in _BOX.finditer(text, max(first - 2, 0)) if first >= 0 else ():
        start, end, content = match.start(), match.end(), match["token"]
        if start < position:
            continue
        if content is None:
            closing = _closing_braces(text, start) if closing is None else closing
            if (brace := closing.get(end - 1)) is None:
                continue
            content, end = text[end:brace], brace + 1
        position = end
        if content := _unnested(content):
            found.append((start, end, content))
    return found


def _unnested(content: str) -> str:
    """The innermost content of boxes within a box."""
    content = content.strip()
    for _ in range(_MOST_NESTED):
        match = _BOX.match(content)
        if match is None or match["token"] or closing_brace(content, match.end() - 1) != len(content) - 1:
            break
        content = content[match.end() : -1].strip()
    return content


def _joint(between: str) -> str | None:
    """How two boxes hang together: "or" (alternatives, side by side), "and" (parts of one answer), None (not)."""
    if len(between) > _MOST_BETWEEN:
        return None
    words = _DRESS.sub(" ", between).lower().replace(",", " , ").split()
    if not words or words in (["or"], [",", "or"], ["或"], ["或者"]):
        return "or"
    return "and" if words in (["and"], [","], [",", "and"], ["和"], ["，"], ["、"], ["&"]) else None


def from_box(text: str) -> Extraction | None:
    """The last balanced box.

    Different boxes side by side or joined by "or" are no answer; those joined by a comma or "and" are one list.
    """
    boxes = _boxes(text)
    if not boxes:
        return None
    following, _, last = boxes.pop()
    parts = [last]
    for start, end, content in reversed(boxes):
        joint = _joint(text[end:following])
        if joint is None or len(parts) == _MOST_PARTS:
            break
        if content not in parts:
            if joint == "or":
                return Extraction(None, "boxed", "two different final boxes: no single answer was given")
            parts.append(content)
        following = start
    return Extraction(", ".join(reversed(parts)), "boxed", f"the last closed box{'es' if len(parts) > 1 else ''}")


_UNBOXED: dict[str, Callable[[str], str | None]] = {
    "answer_is": unboxed.answer_is,
    "gsm8k_hash": unboxed.gsm8k_hash,
    "multiple_choice": unboxed.multiple_choice,
    "closing_math": unboxed.closing_math,
}


def extract(output: str, rules: Sequence[str], *, truncated: bool = False) -> Extraction:
    """Find the final answer of a response by the first of `rules` that finds one.

    A response cut off by the length limit is searched for a closed box only: what stands at the end of an unfinished
    text is not what it finally answers.
    """
    text = final_part(output)
    if text is None:
        return Extraction(None, "think", "the thinking was never closed: nothing was answered")
    for rule in rules:
        if rule == "boxed" and (boxed := from_box(text)) is not None:
            return boxed
        if rule != "boxed" and not truncated and (answer := _UNBOXED[rule](text)) is not None:
            return Extraction(answer, rule, "found by its rule")
    where = "no closed, non-empty \\boxed{}" if list(rules) == ["boxed"] else "nothing that reads as a final answer"
    return Extraction(None, "none", f"{where} in the {'truncated ' if truncated else ''}response")
