"""What the guards and checks of a step cost, as a share of the quickstart's step.

    python -m benchmarks.checks [--steps 20]

One run of the quickstart on the real stack. What the driver checks is timed where it happens: guards over the metrics,
and the engines' confirmation of version and digest. What engines and learner check inside their own work is timed on
the side, with the same tensors and as many tokens as the run's steps had: the digest at each end of a transfer, the
comparison of log-probs, the norm of the gradient. One JSON line; `share` is the sum over the median step. Apart from
them, `diagnostics_share` is that of what each micro-batch says about its gradient.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from benchmarks import objectives
from maspo_rl.assembly import running_stack
from maspo_rl.data import embedded_policy_path
from maspo_rl.learner.rank import _add_agreement
from maspo_rl.learner.statistics import Statistics
from maspo_rl.objectives import build
from maspo_rl.objectives.diagnostics import diagnose
from maspo_rl.run import checked_config, prepare
from maspo_rl.types import TokenBatch
from maspo_rl.weights.digest import RunningDigest

WARM_UP = 5


def main() -> None:
    """Runs, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    lines, spent = run(options.steps + WARM_UP)
    step = statistics.median(line["time/step_s"] for line in lines)
    model = AutoModelForCausalLM.from_pretrained(embedded_policy_path())
    tokens = round(statistics.median(line["response/tokens"] for line in lines))
    updates = round(lines[0]["optim/updates"])
    costs = {
        "guards": statistics.median(spent["guard"]),
        "confirmation": statistics.median(spent["confirm"]),
        "digest_at_both_ends": 2 * seconds(functools.partial(digest, model)),
        "logprob_agreement": seconds(functools.partial(agreement, tokens)),
        "gradient_norm": updates * seconds(functools.partial(torch._foreach_norm, list(model.parameters()))),
    }
    diagnostics = updates * seconds(functools.partial(diagnosed, objectives.tokens(tokens // updates, seed=0)))
    milliseconds = {name: round(1000 * value, 3) for name, value in costs.items()}
    figures = {"steps": len(lines), "step_ms": round(1000 * step, 1), "costs_ms": milliseconds}
    shares = {"share": sum(costs.values()) / step, "diagnostics_share": diagnostics / step}
    print(json.dumps({"benchmark": "checks", **figures} | {name: round(value, 4) for name, value in shares.items()}))


def run(steps: int) -> tuple[list[dict[str, Any]], dict[str, list[float]]]:
    """Metrics of each step after the warm-up, and the seconds that each of the driver's checks took in it."""
    spent: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        overrides = [f"trainer.steps={steps}", "eval.at_start=false", "eval.at_end=false", "eval.every=0"]
        config = checked_config(
            ["experiment=quickstart", f"run.dir={folder}", "run.name=checks", "checkpoint.every=0", *overrides]
        )
        prepared = prepare(config)
        with running_stack(config, prepared.tokenizer, prepared.directory) as stack:
            trainer = prepared.trainer(stack, lambda _: None)
            for owner, name in ((trainer, "guard"), (stack.engines, "confirm")):
                setattr(owner, name, timed(getattr(owner, name), spent[name]))
            trainer.run()
        return prepared.directory.read_metrics()[WARM_UP:], {name: times[WARM_UP:] for name, times in spent.items()}


def timed(call: Callable[..., Any], seconds_taken: list[float]) -> Callable[..., Any]:
    """`call`, which notes how long it took."""

    @functools.wraps(call)
    def noting(*arguments: Any) -> Any:
        began = time.perf_counter()
        result = call(*arguments)
        seconds_taken.append(time.perf_counter() - began)
        return result

    return noting


def seconds(call: Callable[[], Any], repeats: int = 50) -> float:
    """Median of a call."""
    taken: list[float] = []
    for _ in range(repeats):
        timed(call, taken)()
    return statistics.median(taken)


def digest(model: torch.nn.Module) -> str:
    """Of all parameters, as either end of a transfer computes it."""
    running = RunningDigest()
    for name, parameter in model.named_parameters():
        running.add(name, parameter.data)
    return running.hexdigest()


def agreement(tokens: int) -> None:
    """The comparison of engine and learner over the tokens of a step."""
    statistics_of_step = Statistics(torch.device("cpu"))
    _add_agreement(statistics_of_step, torch.rand(tokens), torch.rand(tokens))


def diagnosed(batch: TokenBatch) -> None:
    """The diagnostics of one micro-batch, and their sums."""
    loss = build("maspo").token_loss(batch)
    statistics_of_step = Statistics(torch.device("cpu"))
    for name, metric in diagnose(batch, loss.ratio, loss.slope, torch.ones(())).items():
        statistics_of_step.add(name, *(metric if isinstance(metric, tuple) else (metric,)))


if __name__ == "__main__":
    main()
