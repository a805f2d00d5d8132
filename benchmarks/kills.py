"""Kills or stops a random process of a small run at a random phase, again and again, and compares what comes out.

    python -m benchmarks.kills [--rounds 30] [--seed 0] [--actions kill stop]

Each round is one run with one fault on order (`maspo_rl.cluster.faults`): its metrics, times aside, and its final
weights must be those of the undisturbed run, bit for bit, and no process or shared-memory segment may be left. Where
the driver is the victim, the round is `maspo-rl train`, killed, and the same command again. The other rounds follow
one another on one stack, as the runs of a table do, so that only the victim is started anew; that stack is gone at the
end without a trace. One JSON line a round, and one at the end. A fault that does not happen fails its round.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from safetensors.torch import load_file

from maspo_rl import supervision
from maspo_rl.assembly import Stack, running_stack
from maspo_rl.cluster.faults import VARIABLE
from maspo_rl.run import checked_config, prepare

STEPS = 4
RUN = (
    *("experiment=quickstart", f"trainer.steps={STEPS}", "trainer.prompts_per_step=8", "trainer.updates_per_step=2"),
    *("rollout.samples_per_prompt=4", "checkpoint.every=2", "data.problems=64"),
    *("eval.every=2", "eval.problems=8", "eval.samples=2"),
    *("verifier.function=benchmarks.kill_reward:reward", "verifier.memory_gib=8"),
    # A stopped process is waited for this long.
    *("rollout.timeout_s=20", "learner.timeout_s=20", "cluster.max_restarts=1000"),
)
ENGINE = {"generate": STEPS + 3, "update_weights": STEPS + 1, "confirm": STEPS + 1}
# How often a process comes to a phase in an undisturbed run, at least: an order beyond that would never be carried out.
ARRIVALS = {
    "driver": {"rollout": STEPS, "learn": STEPS, "transfer": STEPS, "record": STEPS + 1, "save": STEPS // 2},
    "engine_0": ENGINE,
    "engine_1": ENGINE,
    "learner_0": {"step": STEPS, "backward": 2 * STEPS, "send_weights": STEPS + 1, "save": STEPS // 2},
    # Whichever worker judges its third answer first.
    "verifier": {"judge": 3},
}
GONE_WITHIN_S = 30.0
MARK = "MASPO_RL_KILLS"


@dataclass(frozen=True)
class Bench:
    """Where the rounds run; `orders` is the file that every process looks for its faults in."""

    path: Path
    orders: Path

    def order(self, fault: dict[str, Any] | None) -> None:
        self.orders.write_text(json.dumps([fault] if fault else []))

    def overrides(self, name: str) -> list[str]:
        return [*RUN, f"run.dir={self.path}", f"run.name={name}"]

    def train(self, name: str) -> subprocess.CompletedProcess[str]:
        """One command to its end."""
        command = [sys.executable, "-m", "maspo_rl.cli", "train", *self.overrides(name)]
        environment = os.environ | {MARK: name}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)

    def train_on(self, stack: Stack, name: str) -> None:
        """The same on a stack that runs."""
        config = checked_config(self.overrides(name))
        stack.begin(config)
        run = prepare(config)
        supervision.run(run.trainer(stack, lambda _: None))
        run.directory.release()

    def outcome(self, name: str) -> tuple[list[dict[str, Any]], dict[str, torch.Tensor]]:
        """Metrics, times aside, and final weights."""
        lines = [json.loads(line) for line in (self.path / name / "metrics.jsonl").read_text().splitlines()]
        timed = ("time/", "tokens/per_s")
        metrics = [{key: value for key, value in line.items() if not key.startswith(timed)} for line in lines]
        policy = self.path / name / "checkpoints" / f"step_{STEPS}" / "policy"
        return metrics, load_file(policy / "model.safetensors")

    def same(self, one: str, other: str) -> bool:
        """Whether two runs came to the same end by the same way."""
        (metrics, weights), (metrics_of_other, weights_of_other) = self.outcome(one), self.outcome(other)
        equal = all(torch.equal(weights[name], weights_of_other[name]) for name in weights)
        return metrics == metrics_of_other and equal


def processes_of(name: str) -> set[int]:
    """Living processes that were started for `name`."""
    found = psutil.process_iter(["environ", "status"])
    return {
        process.pid
        for process in found
        if (process.info["environ"] or {}).get(MARK) == name and process.info["status"] != psutil.STATUS_ZOMBIE
    } - {os.getpid()}


def left_over(name: str, allowed: int, segments: set[str]) -> list[str]:
    """Processes of `name` beyond those that may be there, stopped ones, and segments that were not there before; [] as
    soon as there are none."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while True:
        found = [psutil.Process(pid) for pid in processes_of(name) if psutil.pid_exists(pid)]
        left = [f"/dev/shm/{segment}" for segment in set(os.listdir("/dev/shm")) - segments]
        left += [f"pid {process.pid} is stopped" for process in found if process.status() == psutil.STATUS_STOPPED]
        left += [f"{len(found)} processes, not {allowed}"] if len(found) > allowed else []
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.2)


@contextmanager
def shared_stack(bench: Bench) -> Iterator[Stack]:
    """The stack of all rounds in which the driver lives on, which marks its processes."""
    os.environ[MARK] = "shared"
    config = checked_config(bench.overrides("shared"))
    run = prepare(config)
    with running_stack(config, run.tokenizer, run.directory) as stack:
        del os.environ[MARK]
        yield stack


def draw(generator: random.Random, victims: list[str], actions: list[str], once: Path) -> dict[str, Any]:
    """A process, a phase that it comes to, the arrival there, and what happens to it."""
    process = generator.choice(victims)
    phase = generator.choice(list(ARRIVALS[process]))
    # A stopped driver is waited for by nobody, and a user's reward function that is stopped is a timeout by contract.
    action = generator.choice(actions) if process.startswith(("engine", "learner")) else "kill"
    at = generator.randint(1, ARRIVALS[process][phase])
    return {"process": process, "phase": phase, "at": at, "action": action, "once": str(once)}


def driver_round(bench: Bench, name: str) -> list[str]:
    """`maspo-rl train`, killed, and again; what is wrong."""
    segments = set(os.listdir("/dev/shm"))
    first = bench.train(name)
    wrong = [] if first.returncode == -signal.SIGKILL else [f"the driver ended with {first.returncode}: {first.stderr}"]
    wrong += left_over(name, 0, segments)
    second = bench.train(name)
    wrong += [] if second.returncode == 0 else [second.stderr[-2000:]]
    return wrong + left_over(name, 0, segments)


def main() -> int:
    """Exit code 1 if a round came out differently."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--actions", nargs="+", default=["kill"], choices=["kill", "stop"])
    parser.add_argument("--victims", nargs="+", default=list(ARRIVALS), choices=list(ARRIVALS))
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # deaths are what this is about
    generator = random.Random(options.seed)
    failed, before = 0, set(os.listdir("/dev/shm"))
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), Path(folder) / "faults.json")
        bench.order(None)
        os.environ[VARIABLE] = str(bench.orders)
        with shared_stack(bench) as stack:
            bench.train_on(stack, "undisturbed")
            segments, processes = set(os.listdir("/dev/shm")), len(processes_of("shared"))
            for number in range(options.rounds):
                fault = draw(generator, options.victims, options.actions, bench.path / f"fault_{number}")
                bench.order(fault)
                started, name = time.monotonic(), f"run_{number}"
                if fault["process"] == "driver":
                    wrong = driver_round(bench, name)
                else:
                    bench.train_on(stack, name)
                    wrong = left_over("shared", processes, segments)
                wrong += [] if Path(fault["once"]).exists() else ["the fault never happened"]
                wrong += [] if bench.same("undisturbed", name) else ["other metrics or weights"]
                failed += bool(wrong)
                row = {"round": number, **{key: fault[key] for key in ("process", "phase", "at", "action")}}
                row |= {"seconds": round(time.monotonic() - started), "same": not wrong}
                print(json.dumps(row | ({"wrong": wrong} if wrong else {})), flush=True)
    left = left_over("shared", 0, before)
    print(json.dumps({"rounds": options.rounds, "different": failed, "left": left}))
    return int(failed > 0 or bool(left))


if __name__ == "__main__":
    sys.exit(main())
