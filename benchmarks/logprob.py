"""Log-probs of sampled tokens from hidden states, forward and backward: time and memory, against vocabulary and length.

    python -m benchmarks.logprob [--tokens 1024 4096 16384] [--vocabularies 32000:576 152000:896] [--rounds 3]

Ours is `Policy.forward` around a head alone. The naive way makes float32 logits of all tokens, their log-softmax, and
gathers; it has its turn where `--naive-gib` of memory hold what it needs (4 values per token and vocabulary entry).
`above_inputs_gib` is the kernel's peak of the process' resident memory beyond hidden states and head; the gradients of
both, which every way must make, are part of it, and stated as `gradients_gib`.
"""

from __future__ import annotations

from benchmarks import measure
from benchmarks.measure import Subject

TARGETS = {"above_inputs_gib": "at most 1 of 16384:152000:896", "of_naive_seconds": "at most 1.15"}


def main() -> None:
    """Prints a line a run, and for each size (tokens:vocabulary:hidden size) the peak and the ratios."""
    parser = measure.parser(__doc__)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 4096, 16384])
    parser.add_argument("--vocabularies", nargs="+", default=["32000:576", "152000:896"], help="vocabulary:hidden size")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32", help="of head and hidden states")
    parser.add_argument("--naive-gib", type=float, default=12.0, help="memory that the naive way may take")
    options = parser.parse_args()
    for vocabulary in options.vocabularies:
        for tokens in options.tokens:
            fits = 4 * 4 * tokens * int(vocabulary.split(":")[0]) / measure.GIB <= options.naive_gib
            subjects = {"naive": Subject("subjects.logprob:naive")} if fits else {}
            subjects["maspo_rl"] = Subject("subjects.logprob:ours")
            size = f"{tokens}:{vocabulary}"
            found = measure.take_turns("logprob", subjects, options, {"size": size})
            summary = {"above_inputs_gib": measure.median(found, "maspo_rl", "above_inputs_gib")}
            if fits:
                for figure in ("seconds", "above_inputs_gib"):
                    summary[f"of_naive_{figure}"] = measure.ratio(found, figure, "maspo_rl", "naive")
            measure.emit({"benchmark": "logprob", "size": size, **summary, "target": TARGETS})


if __name__ == "__main__":
    main()
