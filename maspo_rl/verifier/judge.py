"""Whether an answer equals the gold: a pure function."""

from __future__ import annotations

from dataclasses import dataclass

from maspo_rl.types import Label


@dataclass(frozen=True, slots=True)
class Result:
    label: Label
    reason: str


def judge(answer: str, gold: str) -> Result:
    from math_verify import parse, verify  # noqa: PLC0415

    parsed_gold = parse(f"\\boxed{{{gold}}}", parsing_timeout=None)
    if not parsed_gold:
        return Result(Label.UNPARSEABLE, "the gold cannot be parsed")
    parsed = parse(f"\\boxed{{{answer}}}", parsing_timeout=None)
    if verify(parsed_gold, parsed, timeout_seconds=None, allow_set_relation_comp=True):
        return Result(Label.CORRECT, "equal by math-verify")
    return Result(Label.WRONG, "not equal to the gold")


def warm_up() -> None:
    """Import and initialise what the first judgement would otherwise pay for."""
    judge("\\frac{1}{2}", "0.5")
