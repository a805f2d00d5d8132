"""What the benchmarks share: a process per subject, subjects in turns, peak memory, figures as JSON lines.

A benchmark states options, subjects, ratios and targets, and imports nothing heavy. Each run of a subject is a process
of its own, which is this module again: `python -m benchmarks.measure MODULE:FUNCTION OPTIONS RESULT` calls the function
with the benchmark's options and writes the figures that it returns to the file RESULT.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

GIB = 1024**3
THREADS = os.cpu_count() or 1
# Threads that wait must not spin while the other process of a pair works; the same for every subject.
ENVIRONMENT = {
    "OMP_NUM_THREADS": str(THREADS),
    "GOMP_SPINCOUNT": "100000",
    "KMP_BLOCKTIME": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "DS_ACCELERATOR": "cpu",
    "HF_HUB_OFFLINE": "1",
}

Figures = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """`function` within `benchmarks`, "subjects.learner:plain"; `options` stand over those of the command line."""

    function: str
    options: Mapping[str, Any] = field(default_factory=dict)


def parser(documentation: str | None, rounds: int = 3) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=rounds, help="how often each subject has its turn")
    options.add_argument(
        "--under", default="", metavar="COMMAND", help="starts every subject's process: 'taskset -c 0,1', 'flock FILE'"
    )
    options.add_argument("--timeout", type=float, default=1800.0, help="seconds that one subject may take")
    return options


def take_turns(
    benchmark: str,
    subjects: Mapping[str, Subject],
    options: argparse.Namespace,
    case: Mapping[str, Any] | None = None,
) -> dict[str, list[Figures]]:
    """The figures of every subject's runs, printed as they come; `case` adds options that are printed with them. A
    round has its seed, for whatever is drawn."""
    # A benchmark that is told to end must not leave a subject behind, which has a session of its own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found: dict[str, list[Figures]] = {name: [] for name in subjects}
    case = case or {}
    for number in range(options.rounds):
        for name, subject in subjects.items():
            chosen = vars(options) | case | subject.options | {"seed": number}
            figures = run(subject.function, argparse.Namespace(**chosen))
            found[name].append(figures)
            emit({"benchmark": benchmark, **case, "subject": name, "round": number + 1, **figures})
    return found


def run(function: str, options: argparse.Namespace) -> Figures:
    """What the subject returns, and the most memory that its process and all below had."""
    with tempfile.TemporaryDirectory() as folder:
        result, output = Path(folder) / "result.json", Path(folder) / "output"
        command = [*shlex.split(options.under), sys.executable, "-m", "benchmarks.measure", f"benchmarks.{function}"]
        with output.open("w") as log:
            process = subprocess.Popen(
                [*command, json.dumps(vars(options)), str(result)],
                stdout=log,
                stderr=log,
                env=os.environ | ENVIRONMENT,
                start_new_session=True,
            )
            memory = PeakMemory(process.pid)
            try:
                code = process.wait(timeout=options.timeout)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)
        if code or not result.exists():
            raise SystemExit(f"{function} failed with {code}:\n{output.read_text()[-4000:]}")
        return json.loads(result.read_text()) | {"peak_gib": round(memory.peak_bytes / GIB, 2)}


def be_subject() -> None:
    """This process is one run of a subject."""
    place, options, result = sys.argv[1:]
    module, _, function = place.partition(":")
    figures = getattr(importlib.import_module(module), function)(argparse.Namespace(**json.loads(options)))
    Path(result).write_text(json.dumps(figures))


def median(found: Mapping[str, Sequence[Figures]], subject: str, figure: str) -> float:
    """Of all the runs of a subject."""
    return statistics.median(figures[figure] for figures in found[subject])


def ratio(found: Mapping[str, Sequence[Figures]], figure: str, subject: str, peer: str) -> float:
    """A subject's median over its peer's."""
    return round(median(found, subject, figure) / median(found, peer, figure), 3)


def emit(row: Mapping[str, Any]) -> None:
    """One JSON line."""
    print(json.dumps(row), flush=True)


def resident_bytes() -> int:
    """Of this process."""
    return int(psutil.Process().memory_info().rss)


def forget_peak() -> None:
    """Sets the kernel's peak of this process' resident memory to what is resident."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """The kernel's peak of this process' resident memory since `forget_peak`."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


class PeakMemory(threading.Thread):
    """Peak of the summed memory of a process and all below it, each shared page counted once.

    To look is to have the kernel walk over all pages, so it may take a fiftieth of one core's time, and no more.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self.peak_bytes = 0
        self.start()

    def run(self) -> None:
        while self._root.is_running() and self._root.status() != psutil.STATUS_ZOMBIE:
            started = time.monotonic()
            try:
                tree = [self._root, *self._root.children(recursive=True)]
                total = sum(_proportional_bytes(process.pid) for process in tree)
            except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                continue  # one ended while it was looked at
            self.peak_bytes = max(self.peak_bytes, total)
            time.sleep(max(0.2, 50 * (time.monotonic() - started)))


def _proportional_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    be_subject()
