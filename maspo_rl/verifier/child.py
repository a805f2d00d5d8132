"""One worker as its owner sees it: a process that forks servers, and the server that judges now."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier.wire import DeadlineError, Message, PeerGoneError, encode, read_within, write_within

START_DEADLINE_S = 120.0
REPLACE_DEADLINE_S = 10.0
_PIPE_BYTES = 60_000
"""What a pipe holds at least: a request up to here is in it as a whole, or not at all."""
_CHILD_CODE = "from maspo_rl.verifier.worker import main; main()"


class WorkerStartError(Exception):
    """A child did not become ready. `killed`: something outside ended it, which says nothing of the next try."""

    def __init__(self, message: str, killed: bool = False) -> None:
        super().__init__(message)
        self.killed = killed


class ServerDiedError(Exception):
    """The server ended before it replied; `replaced` says whether its successor is ready."""

    def __init__(self, replaced: bool) -> None:
        super().__init__("the worker died")
        self.replaced = replaced


class Child:
    """Create, use and kill it on one thread: it dies when that thread ends."""

    def __init__(self, config: VerifierConfig) -> None:
        self.judged = 0
        self.server_pid: int | None = None
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

    def wait_ready(self, seconds: float = START_DEADLINE_S) -> None:
        """Wait for a server's first message; what an earlier one still said is dropped. Raises WorkerStartError."""
        deadline = time.monotonic() + seconds
        try:
            while "ready" not in (hello := read_within(self._replies, deadline)):
                pass
        except DeadlineError as error:
            raise WorkerStartError(f"a verifier worker was not ready after {seconds:.0f} s") from error
        except PeerGoneError as error:
            killed = self.process.wait() == -signal.SIGKILL
            raise WorkerStartError("a verifier worker died while starting; its stderr says why", killed) from error
        self._greeted(hello)

    def _greeted(self, hello: Message) -> None:
        if not hello["ready"]:
            raise WorkerStartError(f"a verifier worker could not start: {hello['reason']}")
        self.server_pid = hello["pid"]

    def ask(self, request: Message, seconds: float) -> Message:
        """The reply. Raises DeadlineError (then `replace_server` or `kill`) or ServerDiedError."""
        deadline = time.monotonic() + seconds
        try:
            self._read_greetings()
            write_within(self._requests, request, deadline)
            message = read_within(self._replies, deadline)
        except PeerGoneError as error:
            raise ServerDiedError(replaced=False) from error
        if "pid" in message:
            self._greeted(message)
            raise ServerDiedError(replaced=len(encode(request)) < _PIPE_BYTES)
        self.judged += 1
        return message

    def is_alive(self) -> bool:
        """Whether a server waits for requests; an idle one that was killed has a successor by now."""
        try:
            self._read_greetings()
        except (PeerGoneError, DeadlineError, WorkerStartError):
            return False
        return self.process.poll() is None

    def _read_greetings(self) -> None:
        """Servers that died idle were replaced; their successors have said so."""
        poller = select.poll()
        poller.register(self._replies, select.POLLIN)
        while poller.poll(0):
            self._greeted(read_within(self._replies, time.monotonic() + REPLACE_DEADLINE_S))

    def server_cpu_s(self) -> float:
        """CPU seconds that the server has had so far; 0 when it is gone."""
        try:
            with open(f"/proc/{self.server_pid}/stat", encoding="ascii", errors="replace") as stream:
                fields = stream.read().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def replace_server(self) -> None:
        """Kill the server and wait for its successor. Raises WorkerStartError; the child must then be killed."""
        assert self.server_pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.server_pid, signal.SIGKILL)
        self.judged = 0
        self.wait_ready(REPLACE_DEADLINE_S)

    def kill(self) -> None:
        """End both processes and close the pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
