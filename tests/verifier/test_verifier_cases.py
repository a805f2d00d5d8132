"""Cases taken from public reports and tests of math verifiers, with the verdict a mathematician would give.

`cases.jsonl`: kind, output, gold, expected (true, false, null for a gold that cannot be judged against), and for cases
on which graders differ our reason. A text is a string or a list of pieces, a piece being a string or [string, times].
The kinds come from the issue trackers of Math-Verify, lm-evaluation-harness, verl, TRL, AReaL and others.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from maspo_rl.config.verifier import UNNAMED_DATASET
from maspo_rl.types import Label
from maspo_rl.verifier import Question, Verifier

LABELS = {True: Label.CORRECT, False: Label.WRONG, None: Label.UNPARSEABLE}


def expand(text: str | list[Any]) -> str:
    if isinstance(text, str):
        return text
    return "".join(piece if isinstance(piece, str) else piece[0] * piece[1] for piece in text)


def test_every_reported_case(verifier: Verifier) -> None:
    lines = (Path(__file__).parent / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    verdicts = verifier.judge_many([Question(expand(case[1]), expand(case[2]), UNNAMED_DATASET) for case in cases])
    wrong = [
        f"{case[0]}: {expand(case[1])[-60:]!r} for {expand(case[2])[:40]!r}: {verdict.label} ({verdict.reason})"
        for case, verdict in zip(cases, verdicts, strict=True)
        if verdict.label is not LABELS[case[3]]
    ]
    assert len(cases) == 218
    assert not wrong, "\n".join(wrong)


def test_long_polynomial_identity(verifier: Verifier) -> None:
    """(x^800 - 1) / (x - 1) is the geometric sum, and not once a coefficient is changed."""
    terms = [f"x^{{{exponent}}}" for exponent in range(2, 800)]
    identity = "\\boxed{\\frac{x^{800}-1}{x-1}-(1+x+" + "+".join(terms) + ")}"
    broken = identity.replace("x^{400}", "2x^{400}")
    right, false = verifier.judge_many([Question(text, "0", "any") for text in (identity, broken)])
    assert (right.label, false.label) == (Label.CORRECT, Label.WRONG)


def test_reward_is_none_exactly_where_nothing_was_judged(verifier: Verifier) -> None:
    questions = [Question("\\boxed{5}", "5", "d"), Question("\\boxed{6}", "5", "d"), Question("\\boxed{5}", "", "d")]
    assert [verdict.reward for verdict in verifier.judge_many(questions)] == [1.0, 0.0, None]


def test_golds_are_checked_when_data_is_loaded(verifier: Verifier) -> None:
    fine = ["5", "\\text{Evelyn}", "(-\\infty, 0) \\cup\\{1\\}", "4.5e33", "f(x)=x", "204_5", "甲", "(C)", "-1./3"]
    assert [verifier.check_gold(gold) for gold in fine] == [None] * len(fine)
    for bad in ("", "  ", "\\frac{1", "?", "nan", "word " * 20):
        assert verifier.check_gold(bad) is not None
