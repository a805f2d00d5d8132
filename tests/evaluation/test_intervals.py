"""Intervals against known standard errors and their coverage on made-up worlds whose truth is known."""

from __future__ import annotations

import numpy
import pytest

from maspo_rl.evaluation.intervals import bootstrap, over_seeds

NORMAL = 1.959964  # 97.5 % quantile


def test_width_is_that_of_the_mean_over_problems() -> None:
    """A mean of P independent values: 2 x 1.96 x sd / sqrt(P). Samples of a problem move together: P counts, not n."""
    values = numpy.repeat([0.0, 1.0], 200)
    interval = bootstrap([values])
    assert interval.value == 0.5
    assert interval.high - interval.low == pytest.approx(2 * NORMAL * 0.5 / 20, rel=0.08)
    both = bootstrap([values, values])
    assert both.high - both.low == pytest.approx(2 * NORMAL * 0.5 / 20 / 2**0.5, rel=0.08)


def test_benchmarks_weigh_alike_and_left_out_problems_do_not_count() -> None:
    interval = bootstrap([numpy.array([1.0]), numpy.array([0.0] * 99 + [numpy.nan])])
    assert (interval.value, interval.low, interval.high) == (0.5, 0.5, 0.5)


def test_the_same_values_give_the_same_interval() -> None:
    values = [numpy.random.default_rng(0).random(30)]
    assert bootstrap(values) == bootstrap(values)


def test_pairing_takes_the_problems_difficulty_out() -> None:
    hard = numpy.random.default_rng(1).random(100)
    difference = bootstrap([(hard + 0.1) - hard])
    assert (difference.low, difference.high) == pytest.approx((0.1, 0.1))


def test_the_interval_over_seeds_and_problems_holds_what_it_says() -> None:
    """Three seeds, forty problems; seeds, problems and noise of each pair vary around a true 0.2."""
    generator = numpy.random.default_rng(2)
    hits = 0
    for _ in range(1000):
        seeds, problems = generator.normal(0, 0.05, (3, 1)), generator.normal(0, 0.3, 40)
        table = 0.2 + seeds + problems + generator.normal(0, 0.3, (3, 40))
        interval = over_seeds([[row] for row in table])
        hits += interval.low <= 0.2 <= interval.high
    assert 0.94 <= hits / 1000 <= 0.995


def test_one_seed_has_the_interval_over_problems() -> None:
    values = [numpy.random.default_rng(3).random(30)]
    assert over_seeds([values]) == bootstrap(values)
    assert over_seeds([[numpy.ones(5)]] * 3).high == 1.0
