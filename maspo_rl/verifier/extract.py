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


_BOX_COMMANDS = ("boxed", "fbox")
"""Found with and without its backslash: some string escape on the way may have eaten it."""
_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)
_CLOSE_THINK = "</think>"
_OPEN_THINK = "<think>"


def final_part(output: str) -> str | None:
    """The text after the last `</think>`; None when thinking was opened and never closed."""
    close = output.rfind(_CLOSE_THINK)
    rest = output[close + len(_CLOSE_THINK) :] if close >= 0 else output
    return None if _OPEN_THINK in rest else rest


def closing_brace(text: str, start: int) -> int:
    """The index of the brace that closes the one at `start`, or -1. Escaped braces do not count."""
    depth = 0
    for match in _BRACES.finditer(text, start):
        brace = match.group()
        if brace == "{":
            depth += 1
        elif brace == "}":
            depth -= 1
            if depth == 0:
                return match.start()
    return -1


@dataclass(frozen=True, slots=True)
class _Box:
    start: int
    end: int
    content: str


def _box_at(text: str, command: int) -> _Box | None:
    """The box whose command's name starts at `command`; `\\boxed 7` takes one token as TeX does."""
    start = command + (len("boxed") if text.startswith("boxed", command) else len("fbox"))
    backslash = command > 0 and text[command - 1] == "\\"
    if command > 0 and text[command - 1].isalpha():
        return None
    while start < len(text) and text[start] in " \t\n":
        start += 1
    if start == len(text):
        return None
    if text[start] == "{":
        end = closing_brace(text, start)
        return _Box(command - backslash, end + 1, text[start + 1 : end]) if end >= 0 else None
    if not backslash:
        return None
    end = start
    while end < len(text) and text[end].isalnum():
        end += 1
    return _Box(command - 1, end, text[start:end]) if end > start else None


def _last_boxes(text: str, most: int = 8, attempts: int = 64) -> list[_Box]:
    """Up to `most` non-empty closed outermost boxes, last first. Unclosed ones are passed over, `attempts` at most."""
    found: list[_Box] = []
    position = len(text)
    scanned = 0
    while len(found) < most and scanned < attempts:
        command = max(text.rfind(name, 0, position) for name in _BOX_COMMANDS)
        if command < 0:
            break
        position = command
        scanned += 1
        box = _box_at(text, command)
        if box is None:
            continue
        if found and box.end >= found[-1].end:
            # An outer box holds the one found before: the outer content is what was boxed.
            found[-1] = box
        elif box.content.strip():
            found.append(box)
    return found


def _joint(between: str) -> str | None:
    """How two boxes hang together: "or" (alternatives, side by side), "and" (parts of one answer), None (not)."""
    if len(between) > 40:
        return None
    for dress in ("\\text", "\\quad", "\\ ", "\\,", "$", "{", "}", "\\(", "\\)"):
        between = between.replace(dress, " ")
    words = between.lower().replace(",", " , ").split()
    if not words or words in (["or"], [",", "or"], ["或"], ["或者"]):
        return "or"
    return "and" if words in (["and"], [","], [",", "and"], ["和"], ["，"], ["、"], ["&"]) else None


def from_box(text: str) -> Extraction | None:
    """The last balanced box.

    Different boxes side by side or joined by "or" are no answer; those joined by a comma or "and" are one list.
    """
    boxes = _last_boxes(text)
    if not boxes:
        return None
    parts = [_unnested(boxes[0].content)]
    following = boxes[0]
    for box in boxes[1:]:
        joint = _joint(text[box.end : following.start])
        if joint is None:
            break
        content = _unnested(box.content)
        if content not in parts:
            if joint == "or":
                return Extraction(None, "boxed", "two different final boxes: no single answer was given")
            parts.append(content)
        following = box
    if len(parts) == 1:
        return Extraction(parts[0], "boxed", "the last closed box")
    return Extraction(", ".join(reversed(parts)), "boxed", "the last closed boxes")


def _unnested(content: str) -> str:
    """The innermost content of boxes within a box."""
    while True:
        inner = content.strip()
        nested = next((_box_at(inner, 1) for name in _BOX_COMMANDS if inner.startswith("\\" + name)), None)
        if nested is None or nested.end != len(inner):
            return inner
        content = nested.content


_UNBOXED: dict[str, Callable[[str], str | None]] = {
    "answer_is": unboxed.answer_is,
    "gsm8k_hash": unboxed.gsm8k_hash,
    "multiple_choice": unboxed.multiple_choice,
    "closing_math": unboxed.closing_math,
}


def _by_rule(rule: str, text: str) -> Extraction | None:
    if rule == "boxed":
        return from_box(text)
    answer = _UNBOXED[rule](text)
    return None if answer is None else Extraction(answer, rule, "found by its rule")


def extract(output: str, rules: Sequence[str], *, truncated: bool = False) -> Extraction:
    """Find the final answer of a response by the first of `rules` that finds one.

    A response cut off by the length limit is searched for a closed box only: what stands at the end of an unfinished
    text is not what it finally answers.
    """
    text = final_part(output)
    if text is None:
        return Extraction(None, "think", "the thinking was never closed: nothing was answered")
    for rule in rules:
        if truncated and rule != "boxed":
            continue
        found = _by_rule(rule, text)
        if found is not None:
            return found
    where = "no closed, non-empty \\boxed{}" if list(rules) == ["boxed"] else "nothing that reads as a final answer"
    return Extraction(None, "none", f"{where} in the {'truncated ' if truncated else ''}response")
