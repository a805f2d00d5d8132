"""The verifier on a cluster: replicas of the worker pool as Ray actors, spread over the nodes, behind the same front.

What needs no worker is judged in the driver's process as ever; the rest goes to the replica with the least to do.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import defaultdict
from typing import Any

import ray
from ray.exceptions import RayError

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier.pool import MOST_ATTEMPTS, Job, Pool
from maspo_rl.verifier.process import START_DEADLINE_S
from maspo_rl.verifier.verifier import Verifier
from maspo_rl.verifier.worker import Message

MOST_RESTARTS = 10
"""How often Ray starts a replica again, on any node, before it stays dead."""
FAULT_PAUSE_S = 30.0
"""How long a replica that failed is asked only when all others failed as well."""


class Replica:
    """A pool of workers in an actor's process."""

    def __init__(self, config: VerifierConfig) -> None:
        self._pool = Pool(config)
        self._pool.start()

    async def judge(self, request: Message) -> Message:
        return await asyncio.wrap_future(self._pool.submit(request))

    @ray.method(concurrency_group="health")  # type: ignore[untyped-decorator]
    async def alive(self) -> None:
        """Answers whatever the workers do: judgements never queue before it."""


class ActorPool(Pool):
    """`config.replicas` replicas of `config.workers` workers each.

    A judgement whose replica died or fell silent is made once more by another one, then ends as an error. A replica
    that does not say within `config.deadline_s` that it lives is killed, and Ray starts it again.
    """

    def __init__(self, config: VerifierConfig) -> None:
        super().__init__(config)
        self.replicas: list[Any] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="verifier-actors", daemon=True)
        # Of the loop's thread alone: the deadlines of the judgements with each replica, and until when one that failed
        # is rested.
        self._running: defaultdict[int, set[asyncio.Timeout]] = defaultdict(set)
        self._resting: dict[int, float] = {}

    def start(self) -> None:
        with self._lock:
            self._refuse_if_closed()
            if self.replicas:
                return
            actor = ray.remote(concurrency_groups={"health": 1})(Replica).options(
                num_cpus=0, scheduling_strategy="SPREAD", max_restarts=MOST_RESTARTS, max_task_retries=0
            )
            self.replicas = [actor.remote(self._config) for _ in range(self._config.replicas)]
            self._thread.start()
            for index, replica in enumerate(self.replicas):
                asyncio.run_coroutine_threadsafe(self._watch(index, replica), self._loop)

    def patience_s(self, jobs: int) -> float:
        return MOST_ATTEMPTS * super().patience_s(jobs)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            replicas, self.replicas = self.replicas, []
        if not replicas:
            return
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        for replica in replicas:
            ray.kill(replica)

    def _put(self, job: Job) -> None:
        asyncio.run_coroutine_threadsafe(self._judged(job), self._loop)

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, index: int, replica: Any) -> None:
        allowed = START_DEADLINE_S
        while True:
            since, asked = time.strftime("%H:%M:%S"), time.monotonic()
            try:
                await asyncio.wait_for(replica.alive.remote(), allowed)
                allowed = self._config.deadline_s
            except TimeoutError:
                logging.getLogger(__name__).warning(
                    "the driver has waited since %s, %.0f s, for verifier replica %d to say that it lives, with %d "
                    "judgements to make; starting it again, or raise verifier.deadline_s",
                    since,
                    allowed,
                    index,
                    len(self._running[index]),
                )
                ray.kill(replica, no_restart=False)
                # Ray gives a process seconds to end by itself, which these need not wait for.
                for deadline in self._running[index]:
                    deadline.reschedule(self._loop.time())
                allowed = START_DEADLINE_S
            except RayError:  # it died, or is being started again, which its judgements tell
                allowed = START_DEADLINE_S
            await asyncio.sleep(max(0.0, asked + self._config.deadline_s - time.monotonic()))

    async def _judged(self, job: Job) -> None:
        replicas, reason, last = self.replicas, "the verifier was closed", -1
        try:
            while job.attempts < MOST_ATTEMPTS:
                job.attempts += 1
                self.retries += job.attempts > 1
                last = self._least_busy(last)
                deadline = asyncio.timeout(super().patience_s(0))
                self._running[last].add(deadline)
                try:
                    async with deadline:
                        reply = await replicas[last].judge.remote(job.request)
                except (RayError, TimeoutError) as error:
                    self._resting[last] = time.monotonic() + FAULT_PAUSE_S
                    summary = " ".join(str(error).split())[:200] or "it fell silent"
                    reason = f"verifier replica {last}: {type(error).__name__}: {summary}"
                else:
                    job.future.set_result(reply)
                    return
                finally:
                    self._running[last].discard(deadline)
        finally:
            if not job.future.done():
                job.fail(reason)

    def _least_busy(self, last: int) -> int:
        """Another replica than `last`, and one that did not just fail, if there is one."""
        now = time.monotonic()
        return min(
            range(self._config.replicas),
            key=lambda one: (one == last, self._resting.get(one, 0.0) > now, len(self._running[one]), one),
        )


class VerifierActors(Verifier):
    """`Verifier` with its workers in `config.replicas` Ray actors; Ray must run."""

    def __init__(self, config: VerifierConfig) -> None:
        self.pool = ActorPool(config)
        super().__init__(config, self.pool)
