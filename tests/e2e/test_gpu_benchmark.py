"""The script that is prepared for a GPU, on tiny shapes and a CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from maspo_rl.objectives import catalogue

CLONE = Path(__file__).resolve().parents[2]


def test_every_part_states_its_share_of_the_measured_peak() -> None:
    command = [sys.executable, "-m", "benchmarks.gpu", "--device", "cpu", "--tiny"]
    output = subprocess.run(command, cwd=CLONE, check=True, capture_output=True, text=True, timeout=180).stdout
    # DeepSpeed prints a line of its own when it is imported.
    peak, *parts = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert peak["tflop_per_s"] > 0
    assert peak["gb_per_s"] > 0
    assert all(part["share_of_peak"] > 0 for part in parts)
    assert [part["part"] for part in parts] == [
        *["log_probs"] * 3, *["attention"] * 2, *["objective"] * len(catalogue()), *["learner"] * 2,
    ]  # fmt: skip
    operators = next(part for part in parts if part.get("subject") == "operators")
    assert operators["logprobs_apart"] == 0
