"""`maspo-rl train` as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from maspo_rl.cluster.faults import VARIABLE

SMALL = (
    "experiment=quickstart",
    "trainer.steps=4",
    "trainer.prompts_per_step=8",
    "trainer.updates_per_step=2",
    "eval.problems=16",
    "eval.samples=4",
    "eval.every=2",
    "checkpoint.every=2",
)


def command(path: Path, name: str) -> list[str]:
    """The command line of a small run."""
    return [sys.executable, "-m", "maspo_rl.cli", "train", *SMALL, f"run.dir={path}", f"run.name={name}"]


def run(path: Path, name: str, **fault: str | int) -> subprocess.CompletedProcess[str]:
    """Runs it to its end, with one fault on order where one is given."""
    orders = path / f"{name}_faults.json"
    orders.write_text(json.dumps([fault] if fault else []))
    environment = os.environ | {"MASPO_TEST_RUN": str(path / name), VARIABLE: str(orders)}
    return subprocess.run(
        command(path, name), env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def metrics(path: Path) -> list[dict[str, Any]]:
    """metrics.jsonl without times and rates."""
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [
        {name: value for name, value in line.items() if not name.startswith("time/") and name != "tokens/per_s"}
        for line in lines
    ]


def processes_of(marker: Path) -> list[str]:
    """Command lines of living processes that were started for a run in `marker`."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        if process.info["status"] == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
            continue
        text = " ".join(process.info["cmdline"] or [])
        if (process.info["environ"] or {}).get("MASPO_TEST_RUN") == str(marker):
            found.append(text)
    return found


def wait_until_gone(marker: Path, segments: set[str]) -> None:
    """Ray ends its workers when it is shut down, or when its driver is gone; they need a moment for it. The
    segments of shared memory are those of before, `segments`, or fewer."""
    deadline = time.monotonic() + 30
    while left := processes_of(marker):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
    assert set(os.listdir("/dev/shm")) <= segments


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, segments = tmp_path_factory.mktemp("runs"), set(os.listdir("/dev/shm"))
    result = run(path, "whole")
    assert result.returncode == 0, result.stderr[-3000:]
    wait_until_gone(path / "whole", segments)
    return path / "whole"


def test_a_run_leaves_what_it_promises(finished: Path) -> None:
    lines = metrics(finished)
    assert [line["step"] for line in lines] == [0, 1, 2, 3, 4]
    names = {
        *("reward/mean", "reward/correct", "verifier/timeout", "group/kept", "group/dropped", "policy/entropy"),
        *("policy/ratio_max", "policy/gate_mean", "policy/clip_fraction", "policy/mismatch_kl", "optim/grad_norm"),
        *("response/length_mean", "response/truncated", "optim/lr", "version"),
    }
    for line in lines[1:]:
        assert names <= set(line)
        assert line["version"] == line["step"] - 1
        assert line["optim/updates"] == 2
    assert {"eval/arithmetic/avg@4", "eval/arithmetic/pass@4"} <= set(lines[0]) & set(lines[2]) & set(lines[4])
    assert (finished / "config.yaml").exists()
    assert (finished / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((finished / "samples").iterdir())) == 4
    assert len(list((finished / "evaluation").iterdir())) == 3
    assert sorted(folder.name for folder in (finished / "checkpoints").iterdir()) == ["step_2", "step_4"]


def test_reported_accuracy_can_be_counted_from_the_samples_on_disk(finished: Path) -> None:
    rows = [json.loads(line) for line in (finished / "evaluation" / "arithmetic_step_4.jsonl").read_text().splitlines()]
    right = [row["verdict"]["label"] == "correct" for row in rows]
    boxed = [f"\\boxed{{{row['gold']}}}" in row["response"] for row in rows]
    assert sum(right) / len(right) == pytest.approx(metrics(finished)[-1]["eval/arithmetic/avg@4"])
    assert right == boxed


def test_the_exported_policy_loads_elsewhere(finished: Path) -> None:
    policy = finished / "checkpoints" / "step_4" / "policy"
    tokenizer = AutoTokenizer.from_pretrained(policy)
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "12 + 34 = ?"}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    model = AutoModelForCausalLM.from_pretrained(policy)
    assert model.generate(**prompt, max_new_tokens=4).shape[1] > prompt["input_ids"].shape[1]


def test_stopped_killed_and_started_again_a_run_is_the_same_run(finished: Path, tmp_path: Path) -> None:
    """Ctrl-C leaves a checkpoint that the same command goes on from, and so does a driver that is killed after it."""
    path, segments = finished.parent / "stopped", set(os.listdir("/dev/shm"))
    process = subprocess.Popen(
        command(finished.parent, "stopped"),
        env=os.environ | {"MASPO_TEST_RUN": str(path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 200
    while not (path / "metrics.jsonl").exists() or len(metrics(path)) < 2:
        assert time.monotonic() < deadline, "the run did not reach its first step"
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.02)
    # A stopped driver is waited for by nobody: it goes on when it is let go on.
    process.send_signal(signal.SIGSTOP)
    time.sleep(1)
    process.send_signal(signal.SIGCONT)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output[-3000:]
    reached = metrics(path)[-1]["step"]
    assert reached < 4
    assert (path / "checkpoints" / f"step_{reached}" / "policy").exists()
    wait_until_gone(path, segments)
    once = str(tmp_path / "killed")
    result = run(finished.parent, "stopped", process="driver", phase="transfer", action="kill", at=2, once=once)
    assert result.returncode == -signal.SIGKILL
    wait_until_gone(path, segments)
    result = run(finished.parent, "stopped")
    assert result.returncode == 0, result.stderr[-3000:]
    assert metrics(path) == metrics(finished)
    wait_until_gone(path, segments)
