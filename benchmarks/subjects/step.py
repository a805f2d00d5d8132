"""`benchmarks.step`: a run of `maspo-rl train`."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import measure

SAMPLES = 8
PHASES = ("rollout", "learn", "transfer")


def train(options: argparse.Namespace) -> measure.Figures:
    """Step times of a run whose policy stays as it is, from the run's own metrics."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(sys.executable, "-m", "maspo_rl.cli", "train", "experiment=quickstart", f"model.path={options.model}"),
            *("data=arithmetic", "data.max_prompt_tokens=64", f"run.dir={folder}", "run.name=step"),
            *(f"trainer.steps={options.steps + options.warm_up}", f"trainer.updates_per_step={options.updates}"),
            *(f"trainer.prompts_per_step={options.prompts}", f"rollout.max_new_tokens={options.max_new_tokens}"),
            *(f"learner.micro_batch_tokens={options.micro_batch_tokens}", "optimizer.lr=1e-9", "checkpoint.every=0"),
            *(f"learner.gradient_checkpointing={options.checkpointing}", f"seed={options.seed}"),
            *("eval.at_start=false", "eval.at_end=false", "eval.every=0"),
            *(f"rollout.engines={options.engines}", f"rollout.threads={measure.THREADS // options.engines}"),
            *("rollout.timeout_s=1800", "learner.timeout_s=1800"),
        ]
        subprocess.run(command, check=True)
        lines = (Path(folder) / "step" / "metrics.jsonl").read_text().splitlines()
        steps = [json.loads(line) for line in lines[options.warm_up :]]
    seconds = [step["time/step_s"] for step in steps]
    phases = {name: round(statistics.median(step[f"time/{name}_s"] for step in steps), 3) for name in PHASES}
    lengths = [step["response/length_mean"] for step in steps]
    return figures(seconds, lengths, SAMPLES * options.prompts) | {"phases_s": phases}


def figures(seconds: list[float], lengths: list[float], responses: int) -> dict[str, Any]:
    """Of the counted steps, of so many responses each with these mean lengths."""
    return {
        "steps": len(seconds),
        "median_s": round(statistics.median(seconds), 3),
        "fastest_s": round(min(seconds), 3),
        "slowest_s": round(max(seconds), 3),
        "response_tokens": round(statistics.mean(lengths), 1),
        "token_ms": round(1000 * sum(seconds) / (responses * sum(lengths)), 3),
    }
