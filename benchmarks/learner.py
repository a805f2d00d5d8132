"""A learner's update beside a plain transformers loop: tokens per second and peak memory, of SmolLM2-135M for example.

    python -m benchmarks.learner --model DIR [--lengths spread equal] [--rounds 3]

`spread`: 32 rows whose lengths are log-normal, the longest 3.5 times the mean; `equal`: 8 rows of 256 tokens, where no
padding can be saved. Of each 8 rows the first `--prompt` tokens are the same, as in a group. Ours is
`LearnerRank.step` with one update. The plain loop pads every row to the longest of the step, takes `--plain-rows` of
them at a time through the model with an attention mask, makes all logits and their log-softmax in float32, and ends
with the same optimiser. Tokens are those of the rows, without padding. `standing_gib` is what the process holds before
the update (imports, weights, gradients, moments), and part of `peak_gib`.
"""

from __future__ import annotations

from benchmarks import measure
from benchmarks.measure import Subject

SUBJECTS = {"plain": Subject("subjects.learner:plain"), "maspo_rl": Subject("subjects.learner:ours")}
TARGETS = {
    "spread": {"tokens_per_s": "at least 3", "peak_gib": "at most 0.4"},
    "equal": {"tokens_per_s": "at least 1.4"},
}


def main() -> None:
    """Prints a line a run, and the ratios for each kind of lengths."""
    parser = measure.parser(__doc__)
    parser.add_argument("--model", required=True, help="directory of the policy")
    parser.add_argument("--lengths", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--rows", type=int, default=32, help="of the spread lengths")
    parser.add_argument("--mean", type=int, default=64, help="tokens, of the spread lengths")
    parser.add_argument("--prompt", type=int, default=16, help="tokens of the prompt that a group's rows share")
    parser.add_argument("--samples", type=int, default=8, help="rows of a group; 1: each has a prompt of its own")
    parser.add_argument("--micro-batch-tokens", type=int, default=1024, help="ours")
    parser.add_argument("--checkpointing", action="store_true", help="ours computes activations again")
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16"], default="auto", help="of the weights")
    parser.add_argument("--plain-rows", type=int, default=8, help="of a micro-batch; TRL's default is 8")
    options = parser.parse_args()
    for lengths in options.lengths:
        found = measure.take_turns("learner", SUBJECTS, options, {"lengths": lengths})
        ratios = {name: measure.ratio(found, name, "maspo_rl", "plain") for name in ("tokens_per_s", "peak_gib")}
        measure.emit({"benchmark": "learner", "lengths": lengths, "of_plain": ratios, "target": TARGETS[lengths]})


if __name__ == "__main__":
    main()
