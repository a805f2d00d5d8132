"""Kills or stops a random process of a small run at a random phase, again and again, and compares what comes out.

Each round is a whole `maspo-rl train` with one fault on order (`maspo_rl.cluster.faults`), repeated when the driver
itself was the victim. Its metrics, times aside, and its final weights must be those of the undisturbed run, bit for
bit, and no process or shared-memory segment may be left. One JSON line a round, and one at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import torch
from safetensors.torch import load_file

from maspo_rl.cluster.faults import VARIABLE

RUN = (
    *("experiment=quickstart", "trainer.steps=6", "trainer.prompts_per_step=8", "rollout.samples_per_prompt=4"),
    *(
        "checkpoint.every=2",
        "eval.every=3",
        "eval.problems=8",
        "eval.samples=2",
        "data.problems=64",
        "report.wandb=off",
    ),
    *("rollout.timeout_s=60", "learner.timeout_s=60"),
)
PHASES = {
    "driver": ("rollout", "learn", "transfer", "record", "save"),
    "engine_0": ("generate", "update_weights", "confirm"),
    "learner_0": ("step", "backward", "send_weights", "save"),
}
MARK = "MASPO_RL_KILLS"


def train(path: Path, name: str, fault: dict[str, Any] | None) -> subprocess.CompletedProcess[str]:
    """One command to its end."""
    command = [sys.executable, "-m", "maspo_rl.cli", "train", *RUN, f"run.dir={path}", f"run.name={name}"]
    environment = os.environ | {MARK: str(path), VARIABLE: json.dumps([fault] if fault else [])}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)


def outcome(run: Path) -> tuple[list[dict[str, Any]], dict[str, torch.Tensor]]:
    """Metrics, times aside, and final weights."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    timed = ("time/", "tokens/per_s")
    metrics = [{name: value for name, value in line.items() if not name.startswith(timed)} for line in lines]
    return metrics, load_file(run / "checkpoints" / "step_6" / "policy" / "model.safetensors")


def same(one: Path, other: Path) -> bool:
    """Whether two runs came to the same end by the same way."""
    (metrics, weights), (metrics_of_other, weights_of_other) = outcome(one), outcome(other)
    equal = all(torch.equal(weights[name], weights_of_other[name]) for name in weights)
    return metrics == metrics_of_other and equal


def left_over(path: Path, segments: set[str]) -> list[str]:
    """Processes of ours that live, and shared-memory segments that were not there before."""
    found = [name for name in os.listdir("/dev/shm") if name not in segments]
    for process in psutil.process_iter(["pid", "environ", "name"]):
        if (process.info["environ"] or {}).get(MARK) == str(path) and process.pid != os.getpid():
            found.append(f"{process.info['name']} ({process.pid})")
    return found


def main() -> int:
    """Exit code 1 if a round came out differently."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--actions", nargs="+", default=["kill"], choices=["kill", "stop"])
    options = parser.parse_args()
    generator = random.Random(options.seed)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        whole = train(path, "undisturbed", None)
        if whole.returncode:
            sys.exit(whole.stderr)
        for number in range(options.rounds):
            process = generator.choice(list(PHASES))
            action = "kill" if process == "driver" else generator.choice(options.actions)
            fault = {"process": process, "phase": generator.choice(PHASES[process]), "at": generator.randint(1, 3)}
            fault |= {"action": action, "once": str(path / f"fault_{number}")}
            segments, started, commands = set(os.listdir("/dev/shm")), time.monotonic(), 1
            result = train(path, f"run_{number}", fault)
            happened = Path(fault["once"]).exists()
            if result.returncode:
                commands = 2
                result = train(path, f"run_{number}", None)
            time.sleep(2)  # for the kernel to take down what lost its parent
            left = left_over(path, segments)
            good = result.returncode == 0 and not left and same(path / "undisturbed", path / f"run_{number}")
            failed += not good
            row = {"round": number, **{key: fault[key] for key in ("process", "phase", "at", "action")}}
            row |= {"happened": happened, "commands": commands, "seconds": round(time.monotonic() - started)}
            print(
                json.dumps(row | {"same": good} | ({} if good else {"left": left, "said": result.stderr[-2000:]})),
                flush=True,
            )
    print(json.dumps({"rounds": options.rounds, "different": failed}))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
