"""Tokens per second of our engine, and of an evaluation, beside bare `vllm.LLM.generate` on the same requests.

    python -m benchmarks.rollout --model DIR --problems FILE [--count 200] [--k 4] [--max-new-tokens 256] [--rounds 3]

FILE is GSM8K's test.jsonl. All three draw `--k` samples of the first `--count` problems with the same seeds and
settings. `vllm`: one call of `generate` with the engine arguments of `maspo_rl.rollout.engine`. `engine`: one call of
`EngineGroup.sample` on our engine actor, log-probs and texts included. `evaluation`: all that `maspo-rl eval` does
after its start, which is chunks, judging, and samples on disk. Each does a few requests first.
"""

from __future__ import annotations

from benchmarks import measure
from benchmarks.measure import Subject

SUBJECTS = {
    "vllm": Subject("subjects.rollout:bare"),
    "engine": Subject("subjects.rollout:engine"),
    "evaluation": Subject("subjects.rollout:evaluation"),
}


def main() -> None:
    """Prints a line a run, and the ratios of the medians."""
    parser = measure.parser(__doc__)
    parser.add_argument("--model", required=True, help="directory of the policy")
    parser.add_argument("--problems", required=True, help="GSM8K's test.jsonl")
    parser.add_argument("--count", type=int, default=200, help="problems")
    parser.add_argument("--k", type=int, default=4, help="samples of each problem")
    parser.add_argument("--max-new-tokens", type=int, default=256)
    parser.add_argument("--max-sequences", type=int, default=256, help="that are decoded at a time")
    parser.add_argument("--ours", nargs="+", choices=["engine", "evaluation"], default=["engine", "evaluation"])
    options = parser.parse_args()
    subjects = {name: SUBJECTS[name] for name in ("vllm", *options.ours)}
    found = measure.take_turns("rollout", subjects, options)
    ratios = {name: measure.ratio(found, "tokens_per_s", name, "vllm") for name in options.ours}
    measure.emit({"benchmark": "rollout", "tokens_per_s_of_vllm": ratios, "target": "at least 0.95"})


if __name__ == "__main__":
    main()
