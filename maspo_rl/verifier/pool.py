"""Worker processes that can be killed: one thread of the caller's process owns one child and its deadline."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier.child import START_DEADLINE_S, Child, ServerDiedError, WorkerStartError
from maspo_rl.verifier.wire import DeadlineError, Message

START_ATTEMPTS = 3
START_KILLS = 20
START_PAUSE_S = 10.0
IDLE_CHECK_S = 1.0
DEATH_RETRIES = 3
ERROR_RETRIES = 1
STARVED_RETRIES = 1
STARVED_SHARE = 0.1
_CLOSED: Message = {"label": "error", "reason": "the verifier was closed"}


@dataclass(slots=True)
class Job:
    request: Message
    future: Future[Message] = field(default_factory=Future)
    deaths: int = 0
    errors: int = 0
    starved: int = 0


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
        with self._lock:
            self.pending += 1
        job.future.add_done_callback(self._done)
        self._jobs.put(job)
        return job.future

    def patience_s(self, jobs: int) -> float:
        """Seconds after which `jobs` judgements submitted now must be over, whatever happens: the callers' deadline."""
        rounds = (self.pending + jobs) / self._config.workers + 1
        attempts = 1 + DEATH_RETRIES + ERROR_RETRIES + STARVED_RETRIES
        return rounds * attempts * (self._config.deadline_s + 1) + START_ATTEMPTS * START_DEADLINE_S

    def process_ids(self) -> list[int]:
        """The children that live now."""
        with self._lock:
            pids = [child.server_pid for child in self._children.values() if child.process.poll() is None]
        return [pid for pid in pids if pid is not None]

    def close(self) -> None:
        """Kill the children; jobs that have no verdict end as errors. May be called twice."""
        with self._lock:
            self._closed = True
            for child in self._children.values():
                child.process.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout=10)
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            if job is not None:
                job.future.set_result(_CLOSED)

    def _done(self, _: Future[Message]) -> None:
        with self._lock:
            self.pending -= 1

    def _serve(self, index: int) -> None:
        child: Child | None = None
        while True:
            try:
                child = child or self._start_child(index)
            except WorkerStartError as error:
                if not self._refuse(str(error)):
                    return
                continue
            try:
                job = self._jobs.get(timeout=IDLE_CHECK_S)
            except queue.Empty:
                if not child.is_alive():
                    self._drop_child(index, child)
                    child = None
                continue
            if job is None or self._closed:
                self._drop_child(index, child)
                if job is not None:
                    job.future.set_result(_CLOSED)
                return
            if not self._judge(child, job):
                self._drop_child(index, child)
                child = None

    def _judge(self, child: Child, job: Job) -> bool:
        """Whether the child can be used again."""
        began, cpu_began = time.monotonic(), child.server_cpu_s()
        try:
            reply = child.ask(job.request, self._config.deadline_s)
        except DeadlineError:
            self.restarts["deadline"] += 1
            starved = child.server_cpu_s() - cpu_began < STARVED_SHARE * self._config.deadline_s
            if starved and self._config.function is None and job.starved < STARVED_RETRIES:
                # The machine gave the worker no time: that says nothing of the answer. A user's function may wait.
                job.starved += 1
                self.retries += 1
                self._jobs.put(job)
                return self._replaced(child)
            reason = f"no verdict within {self._config.deadline_s:g} s; the worker was killed"
            job.future.set_result({"label": "timeout", "reason": reason, "seconds": time.monotonic() - began})
            return self._replaced(child)
        except ServerDiedError as death:
            self._again(job)
            return death.replaced
        except WorkerStartError as error:
            job.future.set_result({"label": "error", "reason": str(error)})
            return False
        if reply["label"] == "error" and job.errors < ERROR_RETRIES:
            job.errors += 1
            self.retries += 1
            self._jobs.put(job)
        else:
            job.future.set_result(reply | {"seconds": time.monotonic() - began})
        if child.judged < self._config.recycle_after:
            return True
        self.restarts["recycled"] += 1
        return self._replaced(child)

    def _replaced(self, child: Child) -> bool:
        try:
            child.replace_server()
        except WorkerStartError:
            return False
        return True

    def _again(self, job: Job) -> None:
        """Retry a job whose worker died, within the limit."""
        self.restarts["died"] += 1
        job.deaths += 1
        if job.deaths > DEATH_RETRIES or self._closed:
            job.future.set_result({"label": "error", "reason": f"the worker died {job.deaths} times"})
        else:
            self.retries += 1
            self._jobs.put(job)

    def _refuse(self, reason: str) -> bool:
        """End jobs as errors for a while, since no child can be started; False when the pool was closed."""
        again = time.monotonic() + START_PAUSE_S
        while (remaining := again - time.monotonic()) > 0:
            try:
                job = self._jobs.get(timeout=remaining)
            except queue.Empty:
                return True
            if job is None:
                return False
            job.future.set_result({"label": "error", "reason": reason})
        return True

    def _start_child(self, index: int) -> Child:
        failure = WorkerStartError("the verifier was closed")
        failures = kills = 0
        while failures < START_ATTEMPTS and kills < START_KILLS:
            with self._lock:
                if self._closed:
                    raise failure
                child = Child(self._config)
                self._children[index] = child
            try:
                child.wait_ready()
            except WorkerStartError as error:
                failure = error
                failures += not error.killed
                kills += error.killed
                self._drop_child(index, child)
            else:
                return child
        raise failure

    def _drop_child(self, index: int, child: Child) -> None:
        with self._lock:
            self._children.pop(index, None)
        child.kill()
