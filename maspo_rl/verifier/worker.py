"""The child process: one judgement at a time on its main thread, until its socket closes, it is killed or recycled."""

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
import time
from collections.abc import Callable

from maspo_rl.verifier.channel import Channel, Message

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


def serve(channel: Channel, function_path: str | None) -> None:
    """Answer requests until the other end is gone. What was meant for a killed predecessor is passed over."""
    try:
        function = load_function(function_path) if function_path else None
    except Exception as error:  # noqa: BLE001 - told to the parent, which reports it with the remedy
        channel.send({"ready": False, "reason": f"{type(error).__name__}: {error}"[:500]})
        return
    own_pid = os.getpid()
    channel.send({"ready": True, "pid": own_pid})
    while True:
        try:
            request = channel.receive()
            if isinstance(request, dict) and request.get("to") == own_pid:
                channel.send(answer(request, function))
        except ValueError:
            continue
        except ConnectionError:
            return


def main() -> None:
    """Import once, then fork one server after another: a killed one is replaced in milliseconds.

    `argv[1]` is the settings as JSON. Nothing here has threads, so forking is safe; a user's module is imported in the
    server, since it might.
    """
    settings = json.loads(sys.argv[1])
    die_with_parent(settings["parent_pid"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (settings["memory_bytes"], settings["memory_bytes"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    channel = Channel(socket.socket(fileno=settings["descriptor"]))
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
            serve(channel, settings["function"])
            os._exit(0)
        _, status = os.waitpid(server, 0)
        if status == 0:
            return
        quick_deaths = quick_deaths + 1 if time.monotonic() - began < 0.02 else 0
