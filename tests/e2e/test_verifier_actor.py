"""The verifier in Ray actors judges as it does in this process, whatever becomes of a replica."""

from __future__ import annotations

import contextlib
import threading
import time

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
