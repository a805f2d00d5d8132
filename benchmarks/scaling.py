"""Seconds per token and peak memory of a learner's step against the number of tokens in the step.

    python -m benchmarks.scaling [--tokens 1024 4096 16384 65536] [--model DIR] [--rounds 3]

`LearnerRank.step` with one update, on rows of 64 tokens (equal lengths: with others, more rows give fuller
micro-batches, which would hide what grows). `above_standing_gib` is the kernel's peak of the process' resident memory
beyond what imports, weights, gradients and moments take: what a step of that size needs for itself.
"""

from __future__ import annotations

import os

from benchmarks import measure
from benchmarks.measure import Subject
from maspo_rl.cluster.placement import KEEP_MEMORY

TARGETS = {"microseconds_per_token": "within 0.15 of the largest step's", "above_standing_gib": "constant"}


def main() -> None:
    """Prints a line a run, and each size's ratios to the largest."""
    parser = measure.parser(__doc__)
    parser.add_argument("--model", default="embedded", help="embedded, or the directory of a policy")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 4096, 16384, 65536])
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16"], default="auto", help="of the weights")
    parser.add_argument("--micro-batch-tokens", type=int, default=1024)
    options = parser.parse_args()
    os.environ |= KEEP_MEMORY  # as in a learner's process
    subjects = {f"{tokens} tokens": Subject("subjects.scaling:steps", {"tokens": tokens}) for tokens in options.tokens}
    found = measure.take_turns("scaling", subjects, options)
    for figure in ("microseconds_per_token", "above_standing_gib"):
        ratios = {subject: measure.ratio(found, figure, subject, list(subjects)[-1]) for subject in subjects}
        measure.emit({"benchmark": "scaling", f"{figure}_of_largest": ratios, "target": TARGETS[figure]})


if __name__ == "__main__":
    main()
