"""The child process: one judgement at a time on its main thread, until its pipe closes, it is killed or recycled."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable

from maspo_rl.verifier.wire import Message, PeerGoneError, encode, read_blocking

RewardFunction = Callable[[str, str, str], float]
_PR_SET_PDEATHSIG = 1
MOST_QUICK_DEATHS = 50


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


def call_function(function: RewardFunction, request: Message) -> Message:
    try:
        reward = float(function(request["output"], request["gold"], request["dataset"]))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the user's code may raise anything; it becomes a counted fault
        return {"label": "error", "reason": f"the reward function raised {type(error).__name__}: {error}"[:500]}
    if not math.isfinite(reward):
        return {"label": "error", "reason": f"the reward function returned {reward}"}
    return {"label": "scored", "reason": "the configured reward function", "reward": reward}


def answer(request: Message, function: RewardFunction | None) -> Message:
    from maspo_rl.verifier.judge import judge  # noqa: PLC0415 - after the memory limit is set

    if "ready" in request:
        return {"label": "ready", "reason": ""}
    try:
        if function is not None:
            return call_function(function, request)
        result = judge(request["answer"], request["gold"])
    except MemoryError:
        return {"label": "timeout", "reason": "the judgement needed more than the worker's memory limit"}
    except Exception as error:  # noqa: BLE001 - a fault of the judge is reported and counted, never paid
        return {"label": "error", "reason": f"the judge raised {type(error).__name__}: {error}"[:500]}
    return {"label": result.label.value, "reason": result.reason}


def serve(requests: int, replies: int, function_path: str | None) -> None:
    """Answer requests until the pipe closes. What a killed predecessor left unread is dropped first."""
    os.set_blocking(requests, False)
    with contextlib.suppress(BlockingIOError):
        while os.read(requests, 65536):
            pass
    os.set_blocking(requests, True)
    try:
        function = load_function(function_path) if function_path else None
    except Exception as error:  # noqa: BLE001 - told to the parent, which reports it with the remedy
        os.write(replies, encode({"ready": False, "reason": f"{type(error).__name__}: {error}"[:500]}))
        return
    os.write(replies, encode({"ready": True, "pid": os.getpid()}))
    stream = os.fdopen(requests, "rb", buffering=0)
    while True:
        try:
            request = read_blocking(stream)
        except PeerGoneError:
            return
        os.write(replies, encode(answer(request, function)))


def main() -> None:
    """Import once, then fork one server after another: a killed one is replaced in milliseconds.

    `argv[1]` is the settings as JSON, standard input and output are the pipes. Nothing here has threads, so forking is
    safe; a user's module is imported in the server, since it might.
    """
    settings = json.loads(sys.argv[1])
    die_with_parent(settings["parent_pid"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit = settings["memory_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if not settings["function"]:
        from maspo_rl.verifier.judge import warm_up  # noqa: PLC0415 - after the memory limit is set

        warm_up()
    gc.collect()
    gc.freeze()
    own_pid = os.getpid()
    quick_deaths = 0
    while quick_deaths < MOST_QUICK_DEATHS:
        began = time.monotonic()
        server = os.fork()
        if server == 0:
            die_with_parent(own_pid)
            serve(requests, replies, settings["function"])
            os._exit(0)
        _, status = os.waitpid(server, 0)
        if status == 0:
            return
        quick_deaths = quick_deaths + 1 if time.monotonic() - began < 0.02 else 0
