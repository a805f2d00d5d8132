"""Sequences of a step with lengths on order."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from maspo_rl.learner import SequenceBatch

PROMPT_TOKENS = 16
SAMPLES = 8


def spread_lengths(rows: int, mean: int) -> list[int]:
    """Tokens of each row: the evenly spaced quantiles of a log-normal, shuffled, of which one standard deviation to
    either side spans 4:1. The longest of 32 is 3.5 times the mean, of 64 it is 4.1 times."""
    sigma = math.log(4) / 2
    normal = NormalDist(math.log(mean) - sigma**2 / 2, sigma)
    lengths = [max(4, round(math.exp(normal.inv_cdf((row + 0.5) / rows)))) for row in range(rows)]
    return [int(length) for length in np.random.default_rng(0).permutation(lengths)]


def sequence_batch(
    lengths: list[int], vocabulary: int, prompt_tokens: int = PROMPT_TOKENS, samples: int = SAMPLES
) -> SequenceBatch:
    """Random tokens and advantages. Each group of `samples` rows has one prompt, of `prompt_tokens` or of half of its
    shortest row where that is less."""
    random = np.random.default_rng(1)
    length = np.array(lengths, np.int64)
    group = np.arange(len(length)) // samples
    shortest = np.minimum.reduceat(length, np.flatnonzero(np.diff(group, prepend=-1)))
    prompt = np.minimum(prompt_tokens, shortest // 2)[group]
    response = length - prompt
    token_ids, start = random.integers(5, vocabulary, int(length.sum())), np.concatenate([[0], np.cumsum(length)])
    for row in np.flatnonzero(np.diff(group, prepend=-1) == 0):
        token_ids[start[row] : start[row] + prompt[row]] = token_ids[start[row - 1] : start[row - 1] + prompt[row]]
    return SequenceBatch(
        token_ids=token_ids,
        start=start,
        prompt_length=prompt,
        response_length=response,
        response_start=np.concatenate([[0], np.cumsum(response)]),
        rollout_logprob=np.full(int(response.sum()), -1.0, np.float32),
        advantage=random.standard_normal(len(length)).astype(np.float32),
        group=group,
    )
