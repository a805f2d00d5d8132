"""A pool that stays full whatever becomes of its workers: one thread of the caller's process owns one worker."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier.process import START_DEADLINE_S, ForkServer, Worker, WorkerStartError
from maspo_rl.verifier.worker import Message

START_ATTEMPTS = 3
START_PAUSE_S = 10.0
MOST_ATTEMPTS = 2
"""A judgement that failed by no fault of the answer is made once more, by whichever worker comes free."""
_IDLE_CHECK_S = 1.0
_STARVED_SHARE = 0.1


@dataclass(slots=True)
class Job:
    request: Message
    future: Future[Message] = field(default_factory=Future)
    attempts: int = 0

    def fail(self, reason: str) -> None:
        self.future.set_result({"label": "error", "reason": reason})


class Pool:
    """`config.workers` workers, started at the first job.

    `submit` may be called from any thread; each future ends with a message: a label, a reason, perhaps a reward.
    """

    def __init__(self, config: VerifierConfig) -> None:
        self._config = config
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._server: ForkServer | None = None
        self._workers: dict[int, Worker] = {}
        self._closed = False
        self._ending = threading.Event()
        self._refusal, self._refused_until = "", 0.0
        self.restarts = {"deadline": 0, "died": 0, "recycled": 0}
        self.retries = 0
        self.pending = 0

    def start(self) -> None:
        """Start the workers in the background; returns at once."""
        with self._lock:
            self._refuse_if_closed()
            if not self._threads:
                threading.Thread(target=self._watch_server, name="verifier-server", daemon=True).start()
            while len(self._threads) < self._config.workers:
                index = len(self._threads)
                thread = threading.Thread(target=self._serve, args=(index,), name=f"verifier-{index}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def submit(self, request: Message) -> Future[Message]:
        """Raises RuntimeError after `close`."""
        self.start()
        job = Job(request)
        # From here on nobody can cancel it, so that the thread that ends it never meets an ended future.
        job.future.set_running_or_notify_cancel()
        self._count_pending(1)
        job.future.add_done_callback(lambda _: self._count_pending(-1))
        self._put(job)
        return job.future

    def patience_s(self, jobs: int) -> float:
        """Seconds after which `jobs` judgements submitted now must be over, whatever happens: the callers' deadline."""
        rounds = (self.pending + jobs) / self._config.workers + 1
        return rounds * MOST_ATTEMPTS * (self._config.deadline_s + 1) + START_ATTEMPTS * START_DEADLINE_S

    def process_ids(self) -> list[int]:
        """The workers of this process that live now."""
        with self._lock:
            return [worker.pid for worker in self._workers.values() if not worker.is_gone()]

    def close(self) -> None:
        """Kill the workers; jobs that have no verdict end as errors. May be called twice."""
        self._ending.set()
        with self._lock:
            self._closed = True
            if self._server is not None:
                self._server.close()
                self._server = None
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=10)
        while not self._jobs.empty():
            if (job := self._jobs.get()) is not None:
                job.fail("the verifier was closed")

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise RuntimeError("this verifier is closed; create another")

    def _put(self, job: Job) -> None:
        self._jobs.put(job)

    def _count_pending(self, change: int) -> None:
        with self._lock:
            self.pending += change

    def _serve(self, index: int) -> None:
        while True:
            self._live_worker(index)
            try:
                job = self._jobs.get(timeout=_IDLE_CHECK_S)
            except queue.Empty:
                continue
            if job is None:
                break
            worker = self._live_worker(index)
            if worker is None:
                job.fail("the verifier was closed" if self._closed else self._refusal)
            else:
                self._judge(worker, job)
        self._drop_worker(index)

    def _watch_server(self) -> None:
        """Kills a server that has been stopped for `deadline_s`; the threads start another as they find it gone."""
        deadline_s, since = self._config.deadline_s, math.inf
        while not self._ending.wait(min(_IDLE_CHECK_S, deadline_s / 4)):
            with self._lock:
                server = self._server
            since = min(since, time.monotonic()) if server is not None and server.is_stopped() else math.inf
            if server is not None and time.monotonic() - since >= deadline_s:
                logging.getLogger(__name__).warning(
                    "the process that forks the verifier's workers has been stopped for %g s; it was killed with its "
                    "workers, and others take their places, or raise verifier.deadline_s",
                    deadline_s,
                )
                server.kill()
                since = math.inf

    def _judge(self, worker: Worker, job: Job) -> None:
        job.attempts += 1
        began, cpu_began = time.monotonic(), worker.cpu_s()
        try:
            reply = worker.ask(job.request, self._config.deadline_s)
        except TimeoutError:
            self.restarts["deadline"] += 1
            # A worker without CPU time says nothing of the answer; but a user's function may wait.
            starved = worker.cpu_s() - cpu_began < _STARVED_SHARE * self._config.deadline_s
            worker.kill()
            if starved:
                logging.getLogger(__name__).warning(
                    "verifier worker %d gave no verdict within %g s and used no CPU time: it was stopped, or the "
                    "machine is overloaded; it was killed, and another takes its place",
                    worker.pid,
                    self._config.deadline_s,
                )
            reason = f"no verdict within {self._config.deadline_s:g} s; the worker was killed"
            reply = {"label": "timeout", "reason": reason, "again": starved and self._config.function is None}
        except (OSError, ValueError):
            self.restarts["died"] += 1
            worker.kill()
            reply = {"label": "error", "reason": f"the worker died {job.attempts} times", "again": True}
        if reply.pop("again", reply["label"] == "error") and job.attempts < MOST_ATTEMPTS and not self._closed:
            self.retries += 1
            self._put(job)
        else:
            job.future.set_result(reply | {"seconds": time.monotonic() - began})
        if worker.judged >= self._config.recycle_after and not worker.is_gone():
            self.restarts["recycled"] += 1
            worker.kill()

    def _live_worker(self, index: int) -> Worker | None:
        """The worker of a thread, a new one in place of one that is gone; None while none can be started."""
        worker = self._workers.get(index)
        if worker is not None and not worker.is_gone():
            return worker
        self._drop_worker(index)
        if time.monotonic() < self._refused_until:
            return None
        for _ in range(START_ATTEMPTS):
            with self._lock:
                if self._closed:
                    return None
                if self._server is not None and self._server.is_gone():
                    self._server.close()
                    self._server = None
                self._server = self._server or ForkServer(self._config)
                server = self._server
            try:
                worker = Worker(server)
            except WorkerStartError as error:
                self._refusal, self._refused_until = str(error), time.monotonic() + START_PAUSE_S
                continue
            with self._lock:
                self._workers[index] = worker
            self._refused_until = 0.0
            return worker
        return None

    def _drop_worker(self, index: int) -> None:
        with self._lock:
            worker = self._workers.pop(index, None)
        if worker is not None:
            worker.close()
