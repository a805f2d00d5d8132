"""Seconds of a training step on the embedded policy, 256 completions, beside TRL's GRPOTrainer on the same work.

    python -m benchmarks.step [--steps 40] [--rounds 1] [--peer]

Each subject runs in a process of its own, alternating `rounds` times, on an otherwise idle machine. Printed as JSON
lines: median and quartiles of the steps after warm-up, and for our own runs the peak memory of all processes together
(proportional set size, so that shared pages count once). `--peer` needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

WARM_UP = 10


def main() -> None:
    """Runs every subject and prints its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--peer", action="store_true", help="TRL's GRPOTrainer too")
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for updates in (4, 1):
            subject = f"maspo_rl, {updates} update(s)"
            times, memory = _ours(options.steps, updates)
            seconds.setdefault(subject, []).extend(times)
            print(json.dumps(_figures(subject, times) | {"peak_memory_gib": round(memory, 2)}), flush=True)
        if options.peer:
            times = _peer(options.steps)
            seconds.setdefault("trl, 1 update", []).extend(times)
            print(json.dumps(_figures("trl, 1 update", times)), flush=True)
    if options.peer:
        peer = statistics.median(seconds.pop("trl, 1 update"))
        ratios = {subject: round(peer / statistics.median(times), 2) for subject, times in seconds.items()}
        print(json.dumps({"benchmark": "step", "times_faster_than_trl_with_1_update": ratios}))


def _figures(subject: str, times: list[float]) -> dict[str, object]:
    low, median, high = statistics.quantiles(times, n=4)
    return {
        "benchmark": "step",
        "subject": subject,
        "steps": len(times),
        "median_s": round(median, 3),
        "quartiles_s": [round(low, 3), round(high, 3)],
    }


def _ours(steps: int, updates: int) -> tuple[list[float], float]:
    """Step times and peak memory (GiB) of a run whose policy stays as it is, so that its answers keep their length."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "maspo_rl.cli", "train", "experiment=quickstart", f"run.dir={folder}"]
        command += ["run.name=step", f"trainer.steps={steps + WARM_UP}", f"trainer.updates_per_step={updates}"]
        command += ["optimizer.lr=1e-9", "eval.at_start=false", "eval.at_end=false", "eval.every=0"]
        process = subprocess.Popen(
            [*command, "checkpoint.every=0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        watch = _MemoryWatch(process.pid)
        if process.wait(timeout=900):
            raise SystemExit(f"the run failed: {' '.join(command)}")
        lines = (Path(folder) / "step" / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["time/step_s"] for line in lines[WARM_UP:]], watch.peak_gib


def _peer(steps: int) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.peers.trl_step", "--steps", str(steps + WARM_UP)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=900).stdout
    return list(json.loads(output.splitlines()[-1])["step_s"][WARM_UP:])


class _MemoryWatch(threading.Thread):
    """Peak of the summed memory of a process and all it started, looked at every two seconds."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self.peak_gib = 0.0
        self.start()

    def run(self) -> None:
        while self._root.is_running() and self._root.status() != psutil.STATUS_ZOMBIE:
            try:
                tree = [self._root, *self._root.children(recursive=True)]
                total = sum(_proportional_bytes(process.pid) for process in tree)
            except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                continue
            self.peak_gib = max(self.peak_gib, total / 1024**3)
            time.sleep(2)


def _proportional_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main()
