"""Worker processes that can be killed: one thread of the caller's process owns one child and its deadline."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier.wire import DeadlineError, Message, PeerGoneError, read_within, write_within

START_DEADLINE_S = 120.0
START_ATTEMPTS = 3
IDLE_CHECK_S = 1.0
START_PAUSE_S = 10.0
DEATH_RETRIES = 2
ERROR_RETRIES = 1
MOST_TRIES = 10
"""Retries include children that were found dead when the job came, which says nothing of the job."""
_CHILD_CODE = "from maspo_rl.verifier.worker import main; main()"


class WorkerStartError(Exception):
    """A child did not become ready."""


@dataclass(slots=True)
class Job:
    request: Message
    future: Future[Message] = field(default_factory=Future)
    tries: int = 0
    deaths: int = 0
    errors: int = 0


class Child:
    """One ready child process. Create, use and kill it on one thread: it dies when that thread ends."""

    def __init__(self, config: VerifierConfig) -> None:
        self.judged = 0
        settings = {
            "parent_pid": os.getpid(),
            "memory_bytes": int(config.memory_gib * 2**30),
            "function": config.function,
        }
        # gmpy2 would compute huge powers in C, deaf to everything but SIGKILL.
        environment = os.environ | {
            "SYMPY_GROUND_TYPES": "python",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CHILD_CODE, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests = self.process.stdin.fileno()
        self._replies = self.process.stdout.fileno()
        os.set_blocking(self._requests, False)

    def wait_ready(self) -> None:
        """Raises WorkerStartError."""
        try:
            hello = read_within(self._replies, time.monotonic() + START_DEADLINE_S)
        except DeadlineError as error:
            raise WorkerStartError(f"a verifier worker was not ready after {START_DEADLINE_S:.0f} s") from error
        except PeerGoneError as error:
            raise WorkerStartError("a verifier worker died while starting; its stderr says why") from error
        if not hello["ready"]:
            raise WorkerStartError(f"a verifier worker could not start: {hello['reason']}")

    def hand_over(self, request: Message, deadline: float) -> None:
        """Raises DeadlineError, or PeerGoneError where the child was dead before; it must then be killed."""
        write_within(self._requests, request, deadline)

    def reply(self, deadline: float) -> Message:
        """Raises DeadlineError or PeerGoneError; the child must then be killed."""
        message = read_within(self._replies, deadline)
        self.judged += 1
        return message

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


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
        attempts = 1 + MOST_TRIES
        return rounds * attempts * (self._config.deadline_s + 1) + START_ATTEMPTS * START_DEADLINE_S

    def process_ids(self) -> list[int]:
        """The children that live now."""
        with self._lock:
            return [child.process.pid for child in self._children.values() if child.process.poll() is None]

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
                job.future.set_result({"label": "error", "reason": "the verifier was closed"})

    def _done(self, _: Future[Message]) -> None:
        with self._lock:
            self.pending -= 1

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
                if child.process.poll() is not None:
                    self.restarts["died"] += 1
                    self._drop_child(index, child)
                    child = None
                continue
            if job is None or self._closed:
                self._drop_child(index, child)
                if job is not None:
                    job.future.set_result({"label": "error", "reason": "the verifier was closed"})
                    continue
                return
            if not self._judge(child, job) or child.judged >= self._config.recycle_after:
                if child.judged >= self._config.recycle_after:
                    self.restarts["recycled"] += 1
                self._drop_child(index, child)
                child = None

    def _judge(self, child: Child, job: Job) -> bool:
        """Whether the child can be used again."""
        began = time.monotonic()
        deadline = began + self._config.deadline_s
        try:
            child.hand_over(job.request, deadline)
        except (PeerGoneError, DeadlineError):
            return self._again(job, "could not be handed to a worker")
        try:
            reply = child.reply(deadline)
        except DeadlineError:
            self.restarts["deadline"] += 1
            reason = f"no verdict within {self._config.deadline_s:g} s; the worker was killed"
            job.future.set_result({"label": "timeout", "reason": reason, "seconds": time.monotonic() - began})
            return False
        except PeerGoneError:
            job.deaths += 1
            return self._again(job, f"the worker died {job.deaths} times")
        if reply["label"] == "error" and job.errors < ERROR_RETRIES:
            job.errors += 1
            self.retries += 1
            self._jobs.put(job)
        else:
            job.future.set_result(reply | {"seconds": time.monotonic() - began})
        return True

    def _again(self, job: Job, reason: str) -> bool:
        """Retry a job whose child died, within limits; returns that the child cannot be used again."""
        self.restarts["died"] += 1
        job.tries += 1
        if job.deaths > DEATH_RETRIES or job.tries > MOST_TRIES or self._closed:
            job.future.set_result({"label": "error", "reason": reason})
        else:
            self.retries += 1
            self._jobs.put(job)
        return False

    def _start_child(self, index: int) -> Child:
        failure = WorkerStartError("the verifier was closed")
        for _ in range(START_ATTEMPTS):
            with self._lock:
                if self._closed:
                    raise failure
                child = Child(self._config)
                self._children[index] = child
            try:
                child.wait_ready()
            except WorkerStartError as error:
                failure = error
                self._drop_child(index, child)
            else:
                return child
        raise failure

    def _drop_child(self, index: int, child: Child) -> None:
        with self._lock:
            self._children.pop(index, None)
        child.kill()
