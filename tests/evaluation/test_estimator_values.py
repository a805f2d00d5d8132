"""Estimators against published values, closed forms and brute force."""

from __future__ import annotations

from itertools import combinations, product

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maspo_rl.config.errors import InputError
from maspo_rl.evaluation.estimators import ESTIMATORS, Outcome, per_problem


def outcome(correct: list[bool]) -> Outcome:
    return Outcome(tuple(correct), tuple("right" if right else "wrong" for right in correct))


def of(right: int, samples: int) -> Outcome:
    return outcome([True] * right + [False] * (samples - right))


def test_published_values() -> None:
    """n = 32, c = 8 (Chen et al. 2021, equation 1)."""
    assert [ESTIMATORS["pass"](of(8, 32), k) for k in (1, 8, 32)] == pytest.approx([0.25, 0.930077, 1.0], abs=1e-6)


@pytest.mark.parametrize(("right", "value"), [(1, 0.638), (2, 0.873), (4, 0.986)])
def test_best_at_32_is_what_a_bootstrap_of_the_samples_tends_to(right: int, value: float) -> None:
    exact = ESTIMATORS["best"](of(right, 32), 32)
    assert exact == pytest.approx(1 - (1 - right / 32) ** 32)
    assert exact == pytest.approx(value, abs=5e-4)
    draws = numpy.random.default_rng(42).integers(0, 32, (20_000, 32))
    assert (draws < right).any(axis=1).mean() == pytest.approx(exact, abs=0.01)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=6), st.integers(1, 6))
def test_brute_force(correct: list[bool], k: int) -> None:
    """pass@k: every subset of k. best@k: every sequence of k with repeats. any@k, avg@k: the first k."""
    if k > len(correct):
        return
    subsets = list(combinations(correct, k))
    sequences = list(product(correct, repeat=k))
    sample = outcome(correct)
    assert ESTIMATORS["pass"](sample, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert ESTIMATORS["best"](sample, k) == pytest.approx(sum(map(any, sequences)) / len(sequences))
    assert ESTIMATORS["any"](sample, k) == any(correct[:k])
    assert ESTIMATORS["avg"](sample, k) == pytest.approx(sum(correct[:k]) / k)
    assert ESTIMATORS["best"](sample, k) <= ESTIMATORS["pass"](sample, k) + 1e-12


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["1", "2", "3", None]), min_size=1, max_size=7))
def test_majority_is_the_expectation_over_a_lot_among_leaders(votes: list[str | None]) -> None:
    """Right is "1". Leaders counted by hand; no vote is wrong."""
    counts = {vote: votes.count(vote) for vote in set(votes) - {None}}
    leaders = [vote for vote, count in counts.items() if count == max(counts.values())]
    expected = leaders.count("1") / len(leaders) if leaders else 0.0
    sample = Outcome(tuple(vote == "1" for vote in votes), tuple(votes))
    assert ESTIMATORS["maj"](sample, len(votes)) == pytest.approx(expected)


def test_problems_with_too_few_judged_samples_are_left_out() -> None:
    assert per_problem("avg", [of(1, 2), of(4, 4), of(0, 0)], 4).tolist()[:2] == [0.5, 1.0]
    values = per_problem("pass", [of(1, 2), of(1, 4)], 4)
    assert numpy.isnan(values).tolist() == [True, False]
    with pytest.raises(InputError, match="k=8: no problem has as many judged samples, the most is 7"):
        per_problem("pass", [of(1, 7)], 8)
