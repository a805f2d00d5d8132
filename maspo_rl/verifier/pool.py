"""Worker processes that can be killed: one thread of the caller's process owns one child and its deadline."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier.channel import Message
from maspo_rl.verifier.child import START_DEADLINE_S, Child, WorkerStartError

START_ATTEMPTS = 3
START_PAUSE_S = 10.0
RETRIES = {"died": 3, "error": 1, "starved": 1}
STARVED_SHARE = 0.1


@dataclass(slots=True)
class Job:
    request: Message
    future: Future[Message] = field(default_factory=Future)
    retried: Counter[str] = field(default_factory=Counter)

    def fail(self, reason: str) -> None:
        self.future.set_result({"label": "error", "reason": reason})


class Pool:
    """`config.workers` children, started at the first job, kept full whatever becomes of them.

    `submit` may be called from any thread; each future ends with a message: a label, a reason, perhaps a reward.
    """

    def __init__(self, config: VerifierConfig) -> None:
        self._config = config
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._children: dict[int, Child] = {}
        self._closed = False
        self.restarts = {"deadline": 0, "died": 0, "recycled": 0}
        self.retries = 0
        self.pending = 0

    def start(self) -> None:
        """Start the children in the background; returns at once."""
        with self._lock:
            if self._closed:
                raise RuntimeError("this verifier is closed; create another")
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
        self._jobs.put(job)
        return job.future

    def patience_s(self, jobs: int) -> float:
        """Seconds after which `jobs` judgements submitted now must be over, whatever happens: the callers' deadline."""
        rounds = (self.pending + jobs) / self._config.workers + 1
        attempts = 1 + sum(RETRIES.values())
        return rounds * attempts * (self._config.deadline_s + 1) + START_ATTEMPTS * START_DEADLINE_S

    def process_ids(self) -> list[int]:
        """The workers that live now."""
        with self._lock:
            return [child.server_pid for child in self._children.values() if child.server_pid and child.is_alive()]

    def close(self) -> None:
        """Kill the children; jobs that have no verdict end as errors. May be called twice."""
        with self._lock:
            self._closed = True
            for child in self._children.values():
                child.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=10)
        while not self._jobs.empty():
            if (job := self._jobs.get()) is not None:
                job.fail("the verifier was closed")

    def _count_pending(self, change: int) -> None:
        with self._lock:
            self.pending += change

    def _serve(self, index: int) -> None:
        child: Child | None = None
        refusal, refused_until = "", 0.0
        while True:
            if child is None and time.monotonic() >= refused_until:
                try:
                    child = self._start_child(index)
                except WorkerStartError as error:
                    refusal, refused_until = str(error), time.monotonic() + START_PAUSE_S
            try:
                job = self._jobs.get(timeout=START_PAUSE_S if child is None else None)
            except queue.Empty:
                continue
            if job is None:
                break
            if self._closed or child is None:
                job.fail("the verifier was closed" if self._closed else refusal)
            elif not self._judge(child, job):
                self._drop_child(index)
                child = None
        self._drop_child(index)

    def _judge(self, child: Child, job: Job) -> bool:
        """Whether the child can be used again."""
        began, cpu_began = time.monotonic(), child.server_cpu_s()
        try:
            reply = child.ask(job.request, self._config.deadline_s)
        except TimeoutError:
            self.restarts["deadline"] += 1
            # A worker without CPU time says nothing of the answer; but a user's function may wait.
            starved = child.server_cpu_s() - cpu_began < STARVED_SHARE * self._config.deadline_s
            if not (starved and self._config.function is None and self._retry(job, "starved")):
                reason = f"no verdict within {self._config.deadline_s:g} s; the worker was killed"
                job.future.set_result({"label": "timeout", "reason": reason, "seconds": time.monotonic() - began})
            return child.replace_server()
        except (OSError, ValueError):
            self.restarts["died"] += 1
            if not self._retry(job, "died"):
                job.fail(f"the worker died {job.retried['died'] + 1} times")
            return child.is_alive()
        if reply["label"] != "error" or not self._retry(job, "error"):
            job.future.set_result(reply | {"seconds": time.monotonic() - began})
        if child.judged < self._config.recycle_after:
            return True
        self.restarts["recycled"] += 1
        return child.replace_server()

    def _retry(self, job: Job, cause: str) -> bool:
        """Put a job back, within the limit of its cause."""
        if self._closed or job.retried[cause] >= RETRIES[cause]:
            return False
        job.retried[cause] += 1
        self.retries += 1
        self._jobs.put(job)
        return True

    def _start_child(self, index: int) -> Child:
        failure = WorkerStartError("the verifier was closed")
        for _ in range(START_ATTEMPTS):
            with self._lock:
                if self._closed:
                    break
                child = self._children[index] = Child(self._config)
            try:
                child.wait_ready()
            except WorkerStartError as error:
                failure = error
                self._drop_child(index)
            else:
                return child
        raise failure

    def _drop_child(self, index: int) -> None:
        with self._lock:
            child = self._children.pop(index, None)
        if child is not None:
            child.close()
