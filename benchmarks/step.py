"""Seconds of a whole training step, and peak memory of all its processes, beside TRL's GRPOTrainer on the same work.

    python -m benchmarks.step [--steps 40] [--rounds 3] [--peer]
    python -m benchmarks.step --model DIR --updates 1 --steps 1 --warm-up 0 [--rounds 3] --peer

The embedded policy: 32 prompts x 8 samples of at most 24 new tokens. The directory of a model (SmolLM2-135M): 8 prompts
x 8 samples of at most 256 new tokens. Weights, problems, group size and sampling are the same. TRL makes one update, in
micro-batches of 256 rows or of 8, its default, and keeps its activations, which is its fastest way. The learning rate
is so small that the policy stays, and with it the length of its answers. Samples are not the same, and each round has
seeds of its own, so there is a ratio for a response token too. `--peer` needs the extra `bench`; a step of TRL with
SmolLM2-135M takes minutes.

Number formats are the same: products as `model.dtype=auto` has them, weights, gradients and moments in float32, which
is TRL's default for a path, too. `--peer-weights auto` has TRL hold them in the products' format: half of the memory,
and updates of usual rates round away in bfloat16.
"""

from __future__ import annotations

from benchmarks import measure
from benchmarks.measure import Subject

PEER = "trl, 1 update"
SIZES = {
    "embedded": {
        **{"prompts": 32, "max_new_tokens": 24, "peer_rows": 256, "micro_batch_tokens": 4096},
        "engines": 2,
    },
    "directory": {
        **{"prompts": 8, "max_new_tokens": 256, "peer_rows": 8, "micro_batch_tokens": 1024},
        "engines": 1,
    },
}
TARGETS = {
    "embedded": {"times_faster": "at least 1.3 with 1 update"},
    "directory": {"times_faster": "at least 6", "peak_gib": "at most 0.7"},
}


def main() -> None:
    """Prints a line a run, and the ratios."""
    parser = measure.parser(__doc__, rounds=1)
    parser.add_argument("--model", default="embedded", help="embedded, or the directory of a policy")
    parser.add_argument("--updates", type=int, nargs="+", default=[4, 1], help="of a step of ours")
    parser.add_argument("--steps", type=int, default=40, help="that are counted")
    parser.add_argument("--warm-up", type=int, default=10, help="steps before those")
    parser.add_argument("--checkpointing", action="store_true", help="ours computes activations again")
    parser.add_argument("--peer", action="store_true", help="TRL's GRPOTrainer too")
    parser.add_argument("--peer-weights", choices=("float32", "auto"), default="float32", help="what TRL holds them in")
    parser.add_argument("--peer-steps", type=int, help="that are counted; as many as ours if not given")
    parser.add_argument("--peer-warm-up", type=int, help="as many as ours if not given")
    options = parser.parse_args()
    kind = "embedded" if options.model == "embedded" else "directory"
    subjects = {
        f"maspo_rl, {count} update(s)": Subject("subjects.step:train", {"updates": count}) for count in options.updates
    }
    if options.peer:
        peer = {"steps": options.peer_steps or options.steps}
        peer["warm_up"] = options.warm_up if options.peer_warm_up is None else options.peer_warm_up
        subjects = {PEER: Subject("peers.trl_step:train", peer)} | subjects
    found = measure.take_turns("step", subjects, options, SIZES[kind])
    for name in [name for name in found if options.peer and name != PEER]:
        ratios = {
            "times_faster": round(1 / measure.ratio(found, "median_s", name, PEER), 2),
            "times_faster_a_token": round(1 / measure.ratio(found, "token_ms", name, PEER), 2),
            "peak_gib": measure.ratio(found, "peak_gib", name, PEER),
        }
        measure.emit({"benchmark": "step", "subject": name, "of_trl": ratios, "target": TARGETS[kind]})


if __name__ == "__main__":
    main()
