"""Seconds per token and peak memory of a learner's step against the number of tokens in the step.

    python -m benchmarks.scaling [--tokens 1024 4096 16384 65536] [--model DIR] [--rounds 3] [--turns 4]

The largest size's tokens are learned in steps of each size, one size after the other in the same process, and a time is
compared with the largest size's of the same turn: between two processes a machine with other tenants changes by more
than is looked for. Groups are such that every micro-batch is full, in every size: how full they are is a matter of the
rows, and rows that fill them badly cost more a token in any size. A prompt's tokens count once, as they are computed.
`above_standing_gib` is the kernel's peak of the process' resident memory during the first step of a size beyond what
imports, weights, gradients and moments take: what a step of that size needs for itself.
"""

from __future__ import annotations

import os
import statistics

from benchmarks import measure
from benchmarks.measure import Subject
from maspo_rl.cluster.placement import KEEP_MEMORY

GROUP_TOKENS = 512
"""A prompt of 16 and 8 responses of 62."""
TARGETS = {"of_largest": "within 0.15 of 1", "above_standing_gib": "constant"}


def main() -> None:
    """Prints a line a round, and the medians over rounds."""
    parser = measure.parser(__doc__)
    parser.add_argument("--model", default="embedded", help="embedded, or the directory of a policy")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 4096, 16384, 65536])
    parser.add_argument("--turns", type=int, default=4, help="turns of every size within a round")
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16"], default="auto", help="of the weights")
    parser.add_argument("--micro-batch-tokens", type=int, default=1024)
    options = parser.parse_args()
    for tokens in options.tokens:
        if tokens % options.micro_batch_tokens or options.micro_batch_tokens % GROUP_TOKENS:
            parser.error(
                f"--tokens {tokens} with --micro-batch-tokens {options.micro_batch_tokens}: micro-batches would not be "
                f"full; give micro-batches a multiple of {GROUP_TOKENS} tokens, and steps a multiple of that"
            )
    os.environ |= KEEP_MEMORY  # as in a learner's process
    rounds = measure.take_turns("scaling", {"steps": Subject("subjects.scaling:steps")}, options)["steps"]
    for figure, target in TARGETS.items():
        medians = {size: statistics.median(row[figure][size] for row in rounds) for size in rounds[0][figure]}
        measure.emit({"benchmark": "scaling", figure: medians, "target": target})


if __name__ == "__main__":
    main()
