"""Workers as their owner sees them: a process that forks them, and for each its socket, its deadline and its end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.verifier.worker import Message

START_DEADLINE_S = 120.0
_END_DEADLINE_S = 10.0
"""Of a process that was sent SIGKILL."""


class WorkerStartError(Exception):
    """A worker did not become ready."""


def _hung_up(end: socket.socket) -> bool:
    """Whether the other end is gone; none of ours speaks unasked."""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return bool(poll.poll(0))


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on (proc(5)); none where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:
            return stream.read().rpartition(")")[2].split()
    except OSError:
        return []


class ForkServer:
    """Imports once, then forks workers in milliseconds. Ends with the thread that started it, and they with it."""

    def __init__(self, config: VerifierConfig) -> None:
        self.control, theirs = socket.socketpair()
        settings = {
            "control": theirs.fileno(),
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
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from maspo_rl.verifier.worker import main; main()", json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a user's function prints is no result of ours
                pass_fds=[theirs.fileno()],
                env=environment,
            )

    def is_gone(self) -> bool:
        return _hung_up(self.control)

    def is_stopped(self) -> bool:
        """Whether a signal stopped it (SIGSTOP, SIGTSTP): it lives, and forks nothing."""
        return _stat(self._process.pid)[:1] == ["T"]

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self.kill()
        self._process.wait(_END_DEADLINE_S)
        self.control.close()


class Worker:
    """One forked worker, created, used and closed on one thread.

    Raises WorkerStartError when it is not ready within START_DEADLINE_S, the server's own start included.
    """

    def __init__(self, server: ForkServer) -> None:
        self.judged = 0
        self._killed = False
        self._end, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(server.control, [b"."], [theirs.fileno()])
            greeting = self._receive(time.monotonic() + START_DEADLINE_S)
        except TimeoutError as error:
            server.kill()  # whatever holds it up: the next attempt begins with a new one
            raise WorkerStartError(f"a verifier worker was not ready after {START_DEADLINE_S:.0f} s") from error
        except OSError as error:
            raise WorkerStartError("a verifier worker died while starting; its stderr says why") from error
        if greeting["trouble"]:
            raise WorkerStartError(f"a verifier worker could not start: {greeting['trouble']}")
        self.pid: int = greeting["pid"]

    def ask(self, request: Message, seconds: float) -> Message:
        """The reply. Raises TimeoutError (then `kill` it), or another OSError when the worker died."""
        deadline = time.monotonic() + seconds
        self._end.settimeout(seconds)
        self._end.sendall(json.dumps(request).encode() + b"\n")
        self.judged += 1
        return self._receive(deadline)

    def _receive(self, deadline: float) -> Message:
        received = b""
        while not received.endswith(b"\n"):
            self._end.settimeout(max(deadline - time.monotonic(), 0.001))
            if not (chunk := self._end.recv(65536)):
                raise ConnectionResetError("the worker ended")
            received += chunk
        message: Message = json.loads(received)
        return message

    def cpu_s(self) -> float:
        """CPU seconds that it has had so far; 0 when it is gone."""
        fields = _stat(self.pid)
        return 0.0 if not fields else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_gone(self) -> bool:
        return self._killed or _hung_up(self._end)

    def kill(self) -> None:
        """End it; nothing may be asked of it then."""
        self._killed = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        self._end.close()
