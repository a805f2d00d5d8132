"""One worker as its owner sees it: a process that forks servers, and the server that judges now."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier.channel import Channel, Message

START_DEADLINE_S = 120.0
REPLACE_DEADLINE_S = 10.0


class WorkerStartError(Exception):
    """A child did not become ready."""


class Child:
    """Create, use and kill it on one thread: it dies when that thread ends."""

    def __init__(self, config: VerifierConfig) -> None:
        self.judged = 0
        self.server_pid = 0
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        settings = {
            "parent_pid": os.getpid(),
            "descriptor": theirs.fileno(),
            "memory_bytes": int(config.memory_gib * 2**30),
            "function": config.function,
        }
        # gmpy2 would compute huge powers in C, deaf to everything but SIGKILL.
        environment = os.environ | {
            "SYMPY_GROUND_TYPES": "python",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path),
        }
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from maspo_rl.verifier.worker import main; main()", json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a user's function prints is no message
                pass_fds=[theirs.fileno()],
                env=environment,
            )

    def wait_ready(self, seconds: float = START_DEADLINE_S) -> None:
        """Wait for a server's greeting; what an earlier one still said is dropped. Raises WorkerStartError."""
        deadline = time.monotonic() + seconds
        try:
            while "ready" not in (greeting := self._channel.receive(deadline)):
                pass
        except TimeoutError as error:
            raise WorkerStartError(f"a verifier worker was not ready after {seconds:.0f} s") from error
        except ConnectionError as error:
            raise WorkerStartError("a verifier worker died while starting; its stderr says why") from error
        if not greeting["ready"]:
            raise WorkerStartError(f"a verifier worker could not start: {greeting['reason']}")
        self.server_pid = greeting["pid"]

    def ask(self, request: Message, seconds: float) -> Message:
        """The reply. Raises TimeoutError (then `replace_server` or `kill`), or ConnectionError when the server died."""
        deadline = time.monotonic() + seconds
        while self._channel.has_message():
            # A server that died idle was replaced; its successor has said so.
            self.server_pid = self._channel.receive(deadline).get("pid", 0)
        self._channel.send(request | {"to": self.server_pid}, deadline)
        reply: Message = self._channel.receive(deadline)
        if "ready" in reply:
            self.server_pid = reply.get("pid", 0)
            raise ConnectionResetError("the server died and was replaced")
        self.judged += 1
        return reply

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def server_cpu_s(self) -> float:
        """CPU seconds that the server has had so far; 0 when it is gone."""
        try:
            with open(f"/proc/{self.server_pid}/stat", encoding="ascii", errors="replace") as stream:
                fields = stream.read().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def replace_server(self) -> bool:
        """Kill the server and wait for its successor; when there is none the child must be killed."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.server_pid, signal.SIGKILL)
        self.judged = 0
        try:
            self.wait_ready(REPLACE_DEADLINE_S)
        except WorkerStartError:
            return False
        return True

    def kill(self) -> None:
        """End both processes, from any thread; `ask` raises then."""
        self._process.kill()

    def close(self) -> None:
        self.kill()
        self._process.wait()
        self._channel.socket.close()
