"""The arithmetic set: right golds, splits that cannot meet, the same problems everywhere."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maspo_rl.data.arithmetic import HELDOUT_SHARE, LEVELS, Problem, distinct, stream


def first(levels: list[int], split: str, seed: int, count: int) -> list[Problem]:
    return list(itertools.islice(stream(levels, split, seed), count))  # type: ignore[arg-type]


@pytest.mark.parametrize("level", LEVELS)
def test_golds_are_what_python_computes(level: int) -> None:
    for problem in first([level], "train", 3, 300):
        expression = problem.text.removesuffix(" = ?")
        assert re.fullmatch(r"[\d +*()-]+", expression)
        assert problem.gold == str(eval(expression))
        assert not problem.gold.startswith("-")


@given(seeds=st.tuples(st.integers(), st.integers()), level=st.sampled_from(sorted(LEVELS)))
def test_no_seed_brings_a_heldout_problem_into_training(seeds: tuple[int, int], level: int) -> None:
    train = {problem.text for problem in first([level], "train", seeds[0], 40)}
    heldout = {problem.text for problem in first([level], "heldout", seeds[1], 40)}
    assert not train & heldout


def test_a_sum_and_its_swap_share_a_split() -> None:
    splits: dict[tuple[str, ...], set[str]] = {}
    for split in ("train", "heldout"):
        for problem in distinct([2], split, 0, 20_000):
            if "+" in problem.text:
                operands = tuple(sorted(re.findall(r"\d+", problem.text)))
                splits.setdefault(operands, set()).add(split)
    assert all(len(found) == 1 for found in splits.values())


def test_two_digit_problems_are_all_there_and_a_tenth_is_held_out() -> None:
    # 90 x 90 sums, and 90 x 91 / 2 differences that are not negative.
    train, heldout = (distinct([2], split, 0, 20_000) for split in ("train", "heldout"))
    assert len(train) + len(heldout) == pytest.approx(90 * 90 + 90 * 91 // 2, rel=0.02)
    assert len(heldout) / (len(train) + len(heldout)) == pytest.approx(HELDOUT_SHARE, abs=0.02)


def test_the_same_seed_gives_the_same_problems() -> None:
    # Recorded: a change of these would change every run's data.
    assert [problem.text for problem in first([1, 2, 3, 4, 5], "train", 0, 5)] == [
        *("95 - 14 = ?", "(76 + 91) * 7 = ?", "(72 + 26) * 8 = ?", "253 + 613 = ?", "7 * 28 = ?")
    ]
    assert first([2], "train", 0, 20) != first([2], "train", 1, 20)
