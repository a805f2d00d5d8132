"""Estimators against published values and brute force."""

from __future__ import annotations

from itertools import combinations

import pytest

from maspo_rl.evaluation.estimators import average_at_k, pass_at_k


def test_published_values() -> None:
    """n = 32, c = 8 (Chen et al. 2021, equation 1)."""
    assert pass_at_k([8], [32], 1) == pytest.approx(0.25)
    assert pass_at_k([8], [32], 8) == pytest.approx(0.930077, abs=1e-6)
    assert pass_at_k([8], [32], 32) == 1.0


@pytest.mark.parametrize("correct", range(6))
@pytest.mark.parametrize("k", range(1, 6))
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_sample(correct: int, k: int) -> None:
    outcomes = [True] * correct + [False] * (5 - correct)
    subsets = list(combinations(outcomes, k))
    assert pass_at_k([correct], [5], k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_problems_weigh_alike_whatever_their_samples() -> None:
    assert average_at_k([1, 4], [2, 4]) == 0.75


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="pass@8 needs at least 8"):
        pass_at_k([1, 1], [8, 7], 8)
