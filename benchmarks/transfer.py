"""Seconds of a weight transfer from learner to engine beside one copy of the weights' bytes.

    python -m benchmarks.transfer --model DIR [--transfers 10] [--rounds 3]

Ours is `Stack.publish` between a learner actor and an engine actor: gather, digest, copy into shared memory, vLLM's
reload and repacking, digest again, confirmation. The peer copies as many bytes, tensor by tensor, from memory to memory
with as many threads. Medians of the transfers after the first.
"""

from __future__ import annotations

from benchmarks import measure
from benchmarks.measure import Subject

SUBJECTS = {"copy": Subject("subjects.transfer:copy"), "maspo_rl": Subject("subjects.transfer:transfer")}


def main() -> None:
    """Prints a line a run, and the ratio."""
    parser = measure.parser(__doc__)
    parser.add_argument("--model", required=True, help="directory of the policy")
    parser.add_argument("--transfers", type=int, default=10)
    options = parser.parse_args()
    found = measure.take_turns("transfer", SUBJECTS, options)
    ratio = measure.ratio(found, "seconds", "maspo_rl", "copy")
    measure.emit({"benchmark": "transfer", "of_one_copy": {"seconds": ratio}, "target": {"seconds": "at most 3"}})


if __name__ == "__main__":
    main()
