"""From the judged samples of a problem to avg@k, pass@k, any@k, best@k and maj@k of that problem.

A benchmark's value is the mean over its problems (`value`), each weighing alike whatever its number of samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

import numpy

from maspo_rl.config.errors import InputError


@dataclass(frozen=True, slots=True)
class Outcome:
    """The judged samples of one problem in the order of their index, n of them.

    `votes` are the extracted answers in normal form, None where nothing was answered. `unjudged` and `truncated` count
    samples without a verdict, which are in neither, and samples cut off at the length limit.
    """

    correct: tuple[bool, ...]
    votes: tuple[str | None, ...]
    unjudged: int = 0
    truncated: int = 0


def average(outcome: Outcome, k: int) -> float:
    """avg@k: the share of correct ones among the first k judged samples, or as many as there are."""
    return sum(outcome.correct[:k]) / len(outcome.correct[:k])


def pass_unbiased(outcome: Outcome, k: int) -> float:
    """pass@k without bias: 1 - C(n-c, k) / C(n, k), drawing k of n without replacement (arXiv 2107.03374, eq. 1)."""
    n = len(outcome.correct)
    return 1 - comb(n - sum(outcome.correct), k) / comb(n, k)


def any_of(outcome: Outcome, k: int) -> float:
    """any@k: whether one of the first k samples is correct."""
    return float(any(outcome.correct[:k]))


def best(outcome: Outcome, k: int) -> float:
    """best@k: expected best of k bootstrap draws with replacement from all n samples, 1 - (1 - c/n)^k.

    verl's `best@k/mean` is the mean over 1,000 such draws; this is what it tends to. Biased low at k = n: one correct
    sample of 32 gives 0.638.
    """
    return 1 - (1 - sum(outcome.correct) / len(outcome.correct)) ** k


def majority(outcome: Outcome, k: int) -> float:
    """maj@k: whether the most frequent answer of the first k samples is correct; an unanswered sample has no vote.

    A tie is broken by lot, in expectation: the mean over the answers that share the lead. No vote at all is wrong.
    """
    ballots: defaultdict[str, list[bool]] = defaultdict(list)
    for vote, correct in zip(outcome.votes[:k], outcome.correct[:k], strict=True):
        if vote is not None:
            ballots[vote].append(correct)
    most = max(map(len, ballots.values()), default=0)
    leaders = [sum(ballot) / most for ballot in ballots.values() if len(ballot) == most]
    return sum(leaders) / len(leaders) if leaders else 0.0


ESTIMATORS: dict[str, Callable[[Outcome, int], float]] = {
    "avg": average,
    "pass": pass_unbiased,
    "any": any_of,
    "best": best,
    "maj": majority,
}
"""By the name that stands before `@k`."""


def per_problem(name: str, outcomes: Sequence[Outcome], k: int) -> numpy.ndarray:
    """The estimate `name`@k of each problem, float64[P], in order.

    NaN, to be left out of means, where fewer than k samples were judged; for avg where none was. Raises InputError
    where that leaves no problem.
    """
    least = 1 if name == "avg" else k
    values = [ESTIMATORS[name](o, k) if len(o.correct) >= least else numpy.nan for o in outcomes]
    if numpy.isnan(values).all():
        most = max((len(outcome.correct) for outcome in outcomes), default=0)
        raise InputError(f"k={k}: no problem has as many judged samples, the most is {most}; lower k or sample more")
    return numpy.array(values)
