"""The verifier in Ray actors judges as it does in this process, whatever becomes of a replica."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import psutil
import pytest
import ray

from maspo_rl.cluster import ray_session
from maspo_rl.config.schema import ClusterConfig
from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.types import Label
from maspo_rl.verifier import Question
from maspo_rl.verifier.actor import VerifierActors


def symbolic(first: int, count: int) -> list[Question]:
    """Distinct questions that need a worker, every other one right."""
    return [
        Question(f"\\boxed{{(x+{n})^2}}", f"x^2+{2 * n}x+{n * n + n % 2}", "any") for n in range(first, first + count)
    ]


def test_a_killed_replica_costs_no_verdict() -> None:
    config = VerifierConfig(workers=1, replicas=2, deadline_s=5.0)
    running = contextlib.nullcontext() if ray.is_initialized() else ray_session(ClusterConfig())
    with running, VerifierActors(config) as verifier:
        verifier.wait_ready()
        labels = [verdict.label for verdict in verifier.judge_many(symbolic(0, 100))]
        assert labels == [Label.CORRECT, Label.WRONG] * 50

        def kill() -> None:
            time.sleep(0.05)
            ray.kill(verifier.pool.replicas[0], no_restart=False)

        killer = threading.Thread(target=kill)
        killer.start()
        verdicts = verifier.judge_many(symbolic(100, 600))
        killer.join()
        assert [verdict.label for verdict in verdicts] == [Label.CORRECT, Label.WRONG] * 300
        assert verifier.counts()["retries"] >= 1
        assert verifier.fault_share() == 0.0


def replicas() -> list[int]:
    """Process ids of the replicas that run on this machine."""
    processes = [(process.pid, process.info["cmdline"] or [""]) for process in psutil.process_iter(["cmdline"])]
    return [pid for pid, (name, *_) in processes if name.startswith("ray::Replica")]


def test_a_stopped_replica_is_named_and_replaced_within_its_deadline(caplog: pytest.LogCaptureFixture) -> None:
    config = VerifierConfig(workers=1, replicas=2, deadline_s=2.0)
    running = contextlib.nullcontext() if ray.is_initialized() else ray_session(ClusterConfig())
    with running, VerifierActors(config) as verifier:
        verifier.wait_ready()
        assert [verdict.label for verdict in verifier.judge_many(symbolic(0, 20))] == [Label.CORRECT, Label.WRONG] * 10
        stopped = replicas()[0]
        os.kill(stopped, signal.SIGSTOP)
        began = time.monotonic()
        labels = [verdict.label for verdict in verifier.judge_many(symbolic(100, 200))]
        assert labels == [Label.CORRECT, Label.WRONG] * 100
        # A health check is under way, or begins within one deadline, and is given up after another.
        assert time.monotonic() - began < 2 * config.deadline_s + 2
        assert "for verifier replica" in caplog.text
        assert "verifier.deadline_s" in caplog.text
        deadline = time.monotonic() + 10
        while psutil.pid_exists(stopped):
            assert time.monotonic() < deadline
            time.sleep(0.1)
