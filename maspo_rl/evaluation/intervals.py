"""How far a mean over problems may be off: bootstrap over problems, all samples of a problem drawn together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from scipy.stats import t as student

DRAWS = 2000
SEED = 20260219
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its interval of confidence `LEVEL`."""

    value: float
    low: float
    high: float


def bootstrap(benchmarks: Sequence[numpy.ndarray]) -> Estimate:
    """Mean over benchmarks of the mean over problems; one array of values per benchmark, NaN for a problem left out.

    For a difference of two runs the values are the differences, problem by problem: what makes a problem hard for both
    drops out.
    Percentile interval from `DRAWS` resamples of the problems of each benchmark, seeded: the same values give the same
    interval. A benchmark of which every problem has the same value adds no width, however few problems it has.
    """
    present = [values[~numpy.isnan(values)] for values in benchmarks]
    means = numpy.mean([_resampled(values, index) for index, values in enumerate(present)], axis=0)
    low, high = numpy.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(numpy.mean([values.mean() for values in present])), float(low), float(high))


def _resampled(values: numpy.ndarray, benchmark: int) -> numpy.ndarray:
    generator = numpy.random.default_rng([SEED, benchmark])
    return numpy.array([values[generator.integers(0, len(values), len(values))].mean() for _ in range(DRAWS)])


def over_seeds(seeds: Sequence[Sequence[numpy.ndarray]]) -> Estimate:
    """Mean over seeds of `bootstrap`'s mean, with an interval that holds for other seeds and other problems.

    `seeds[s][b]` holds the values (or paired differences) of seed s on benchmark b, the same problems for every seed.
    The variance is the sum of that over seeds, s^2 / S, and that over problems of the mean over seeds: two-way
    clustering (Cameron, Gelbach, Miller 2011) without its last term, which errs on the wide side. Student's t with
    Satterthwaite's degrees of freedom. One seed: the interval over problems alone.
    """
    if len(seeds) == 1:
        return bootstrap(seeds[0])
    tables = [numpy.array(values) for values in zip(*seeds, strict=True)]
    tables = [table[:, ~numpy.isnan(table).any(axis=0)] for table in tables]
    means = numpy.mean([table.mean(axis=1) for table in tables], axis=0)
    over_problems = [table.mean(axis=0).var(ddof=1) / table.shape[1] for table in tables if table.shape[1] > 1]
    variances = numpy.array([means.var(ddof=1) / len(seeds), sum(over_problems) / len(tables) ** 2])
    freedoms = numpy.array([len(seeds) - 1, max(1, sum(table.shape[1] - 1 for table in tables))])
    value, variance = float(means.mean()), float(variances.sum())
    if variance == 0:
        return Estimate(value, value, value)
    freedom = variance**2 / float((variances**2 / freedoms).sum())
    margin = float(student.ppf((1 + LEVEL) / 2, freedom)) * variance**0.5
    return Estimate(value, value - margin, value + margin)
