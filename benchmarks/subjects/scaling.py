"""`benchmarks.scaling`: the same tokens in steps of several sizes."""

from __future__ import annotations

import argparse
import statistics
import time

from transformers import AutoConfig

from benchmarks import measure
from benchmarks.scaling import GROUP_TOKENS
from benchmarks.subjects.learner import started_rank
from benchmarks.subjects.rows import PROMPT_TOKENS, SAMPLES, sequence_batch
from maspo_rl.data import resolve_model

ROW_TOKENS = PROMPT_TOKENS + (GROUP_TOKENS - PROMPT_TOKENS) // SAMPLES


def steps(options: argparse.Namespace) -> measure.Figures:
    """Medians over the turns, of which every second goes from the largest size to the smallest."""
    rank = started_rank(options)
    vocabulary = AutoConfig.from_pretrained(resolve_model(options.model)).vocab_size
    sizes = sorted(options.tokens)
    batches = {
        tokens: sequence_batch([ROW_TOKENS] * (tokens // GROUP_TOKENS * SAMPLES), vocabulary) for tokens in sizes
    }
    rank.step(sequence_batch([8, 8], vocabulary))
    standing = measure.resident_bytes()
    above = {}
    for tokens in sizes:  # from the smallest on, as what a larger one took may stay
        measure.forget_peak()
        rank.step(batches[tokens])
        above[tokens] = round((measure.peak_bytes() - standing) / measure.GIB, 3)
    seconds: dict[int, list[float]] = {tokens: [] for tokens in sizes}
    for turn in range(options.turns):
        for tokens in reversed(sizes) if turn % 2 else sizes:
            started = time.perf_counter()
            for _ in range(sizes[-1] // tokens):
                rank.step(batches[tokens])
            seconds[tokens].append(time.perf_counter() - started)
    return {
        "microseconds_per_token": {
            tokens: round(1e6 * statistics.median(seconds[tokens]) / sizes[-1], 1) for tokens in sizes
        },
        "of_largest": {
            tokens: round(statistics.median(a / b for a, b in zip(seconds[tokens], seconds[sizes[-1]], strict=True)), 3)
            for tokens in sizes
        },
        "above_standing_gib": above,
    }
