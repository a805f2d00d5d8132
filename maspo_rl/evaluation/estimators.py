"""From correct answers per problem to avg@k and pass@k."""

from __future__ import annotations

from math import comb


def average_at_k(correct: list[int], samples: list[int]) -> float:
    """Mean over problems of the share of correct samples; `correct[i]` of `samples[i]`."""
    return sum(c / n for c, n in zip(correct, samples, strict=True)) / len(correct)


def pass_at_k(correct: list[int], samples: list[int], k: int) -> float:
    """Mean over problems of the unbiased estimate 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374).

    Raises:
        ValueError: a problem has fewer than k samples.
    """
    if min(samples) < k:
        raise ValueError(f"pass@{k} needs at least {k} judged samples of every problem, one has {min(samples)}")
    return sum(1 - comb(n - c, k) / comb(n, k) for c, n in zip(correct, samples, strict=True)) / len(correct)
