"""Golds of public benchmarks, where MASPO_DATA names a folder of `<name>/test.jsonl`; without it nothing is read."""

from __future__ import annotations

import os
import re
from pathlib import Path

from benchmarks.verifier import as_latex, is_scientific, other_golds, read_sets
from maspo_rl.types import Label
from maspo_rl.verifier import Question, Verifier

SETS = dict(read_sets(Path(os.environ["MASPO_DATA"]))) if "MASPO_DATA" in os.environ else {}


def bare(gold: str) -> str:
    """A gold without its separators and its unit, percent or degree sign: what two that are equal have in common."""
    return re.sub(r"[^0-9./-]", "", gold)


def labels(verifier: Verifier, pairs: list[tuple[str, str]], name: str) -> list[Label]:
    questions = [Question(f"\\boxed{{{answer}}}", gold, name) for answer, gold in pairs]
    return [verdict.label for verdict in verifier.judge_many(questions)]


def test_every_gold_equals_itself(verifier: Verifier) -> None:
    for name, golds in SETS.items():
        found = labels(verifier, [(gold, gold) for gold in golds], name)
        assert [gold for gold, label in zip(golds, found, strict=True) if label is not Label.CORRECT] == [], name


def test_no_gold_equals_that_of_another_problem(verifier: Verifier) -> None:
    for name, golds in SETS.items():
        pairs = other_golds(golds, 4)
        accepted = [pair for pair, label in zip(pairs, labels(verifier, pairs, name), strict=True) if label != "wrong"]
        assert [pair for pair in accepted if bare(pair[0]) != bare(pair[1])] == [], name


def test_scientific_golds_in_latex_and_three_times_as_large(verifier: Verifier) -> None:
    for name, golds in SETS.items():
        scientific = [gold for gold in golds if is_scientific(gold)]
        for factor, expected in ((1, Label.CORRECT), (3, Label.WRONG)):
            pairs = [(as_latex(gold, factor), gold) for gold in scientific]
            assert labels(verifier, pairs, name) == [expected] * len(pairs), name
