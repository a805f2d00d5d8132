"""Seconds of a weight transfer from learner to engine beside one copy of the weights' bytes.

    python -m benchmarks.transfer --model DIR [--transfers 10] [--rounds 3]

Ours is `Stack.publish` between a learner actor and an engine actor: gather, digest, copy into shared memory, vLLM's
reload and repacking, digest again, confirmation. The peers copy as many bytes, tensor by tensor, from memory to memory
with as many threads: into memory that was written before, and into memory that the kernel has to give first, as it has
to whoever loads weights. Medians of the transfers after the first.
"""

from __future__ import annotations

from benchmarks import measure
from benchmarks.measure import Subject

SUBJECTS = {
    "copy": Subject("subjects.transfer:copy"),
    "copy into new memory": Subject("subjects.transfer:copy_into_new_memory"),
    "maspo_rl": Subject("subjects.transfer:transfer"),
}


def main() -> None:
    """Prints a line a run, and the ratio."""
    parser = measure.parser(__doc__)
    parser.add_argument("--model", required=True, help="directory of the policy")
    parser.add_argument("--transfers", type=int, default=10)
    options = parser.parse_args()
    found = measure.take_turns("transfer", SUBJECTS, options)
    for peer in list(SUBJECTS)[:-1]:
        ratio = measure.ratio(found, "seconds", "maspo_rl", peer)
        measure.emit({"benchmark": "transfer", "peer": peer, "seconds_of_peer": ratio, "target": "at most 3"})


if __name__ == "__main__":
    main()
