"""Sequences of a step with lengths on order."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from maspo_rl.learner import SequenceBatch

PROMPT_TOKENS = 16
GROUP = 8


def spread_lengths(rows: int, mean: int) -> list[int]:
    """Tokens of each row: the evenly spaced quantiles of a log-normal, shuffled, of which one standard deviation to
    either side spans 4:1. The longest of 32 is 3.5 times the mean, of 64 it is 4.1 times."""
    sigma = math.log(4) / 2
    normal = NormalDist(math.log(mean) - sigma**2 / 2, sigma)
    lengths = [max(4, round(math.exp(normal.inv_cdf((row + 0.5) / rows)))) for row in range(rows)]
    return [int(length) for length in np.random.default_rng(0).permutation(lengths)]


def sequence_batch(lengths: list[int], vocabulary: int) -> SequenceBatch:
    """Random tokens and advantages; prompts of `PROMPT_TOKENS`, of half the row where that is less."""
    random = np.random.default_rng(1)
    length = np.array(lengths, np.int64)
    prompt = np.minimum(PROMPT_TOKENS, length // 2)
    response = length - prompt
    return SequenceBatch(
        token_ids=random.integers(5, vocabulary, int(length.sum())),
        start=np.concatenate([[0], np.cumsum(length)]),
        prompt_length=prompt,
        response_length=response,
        response_start=np.concatenate([[0], np.cumsum(response)]),
        rollout_logprob=np.full(int(response.sum()), -1.0, np.float32),
        advantage=random.standard_normal(len(length)).astype(np.float32),
        group=np.arange(len(length)) // GROUP,
    )
