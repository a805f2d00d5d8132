"""What runs in the verifier's processes: a server that imports once and forks workers, each judging one at a time."""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import math
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
RewardFunction = Callable[[str, str, str], float]
_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel for SIGKILL when the parent's thread that started this process ends (prctl(2))."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def load_function(path: str) -> RewardFunction:
    """Import `package.module:name`. Raises ImportError or AttributeError as the import does."""
    module, _, name = path.partition(":")
    function: RewardFunction = getattr(importlib.import_module(module), name)
    return function


def answer(request: Message, function: RewardFunction | None) -> Message:
    """The reply to one request; whatever goes wrong becomes a label."""
    from maspo_rl.verifier.judge import judge  # noqa: PLC0415 - after the memory limit is set

    if "ready" in request:
        return {"label": "ready", "reason": ""}
    asked = "judge" if function is None else "reward function"
    try:
        if function is None:
            result = judge(request["answer"], request["gold"])
            return {"label": result.label.value, "reason": result.reason}
        reward = float(function(request["output"], request["gold"], request["dataset"]))
    except MemoryError:
        return {"label": "timeout", "reason": "the judgement needed more than the worker's memory limit"}
    except Exception as error:  # noqa: BLE001 - a fault of the judge or of the user's code is counted, never paid
        return {"label": "error", "reason": f"the {asked} raised {type(error).__name__}: {error}"[:500]}
    if not math.isfinite(reward):
        return {"label": "error", "reason": f"the reward function returned {reward}"}
    return {"label": "scored", "reason": "the configured reward function", "reward": reward}


def work(end: socket.socket, function_path: str | None) -> None:
    """Greet, then answer requests, one JSON line each, until the other end is gone."""
    with end.makefile("rwb") as stream:

        def send(message: Message) -> None:
            stream.write(json.dumps(message).encode() + b"\n")
            stream.flush()

        try:
            function = load_function(function_path) if function_path else None
        except Exception as error:  # noqa: BLE001 - told to the pool, which reports it with the remedy
            send({"trouble": f"{type(error).__name__}: {error}"[:500]})
            return
        send({"trouble": "", "pid": os.getpid()})
        for line in stream:
            send(answer(json.loads(line), function))


def main() -> None:
    """Fork a worker for each socket that comes in over the control socket.

    `argv[1]` is the settings as JSON. Nothing here has threads, so forking is safe; a user's module is imported in the
    worker, since it might.
    """
    settings = json.loads(sys.argv[1])
    die_with_parent(settings["parent_pid"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (settings["memory_bytes"], settings["memory_bytes"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not settings["function"]:
        from maspo_rl.verifier.judge import warm_up  # noqa: PLC0415 - after the memory limit is set

        warm_up()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries the workers
    own_pid = os.getpid()
    control = socket.socket(fileno=settings["control"])
    while ends := socket.recv_fds(control, 1, 1)[1]:
        if os.fork() == 0:
            die_with_parent(own_pid)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            work(socket.socket(fileno=ends[0]), settings["function"])
            os._exit(0)
        os.close(ends[0])
