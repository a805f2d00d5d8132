"""`benchmarks.scaling`: steps of one size."""

from __future__ import annotations

import argparse
import statistics
import time

from transformers import AutoConfig

from benchmarks import measure
from benchmarks.subjects.learner import started_rank
from benchmarks.subjects.rows import sequence_batch
from maspo_rl.data import resolve_model

ROW_TOKENS = 64
# Small steps are repeated until they add up to something that a clock and a scheduler do not blur.
LEAST_STEPS, LEAST_SECONDS = 3, 5.0


def steps(options: argparse.Namespace) -> measure.Figures:
    """Median of the steps after the first."""
    rank = started_rank(options)
    vocabulary = AutoConfig.from_pretrained(resolve_model(options.model)).vocab_size
    lengths = [ROW_TOKENS] * (options.tokens // ROW_TOKENS)
    rank.step(sequence_batch([8, 8], vocabulary))
    batch = sequence_batch(lengths, vocabulary)
    measure.forget_peak()
    standing = measure.resident_bytes()
    rank.step(batch)
    seconds: list[float] = []
    while len(seconds) < LEAST_STEPS or sum(seconds) < LEAST_SECONDS:
        started = time.perf_counter()
        rank.step(batch)
        seconds.append(time.perf_counter() - started)
    median = statistics.median(seconds)
    return {
        "tokens": sum(lengths),
        "seconds": round(median, 4),
        "microseconds_per_token": round(1e6 * median / sum(lengths), 1),
        "above_standing_gib": round((measure.peak_bytes() - standing) / measure.GIB, 3),
    }
