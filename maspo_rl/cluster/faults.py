"""Faults on order, so that tests can kill, stop or corrupt a named process at a named phase.

`MASPO_RL_FAULTS` names a file with a JSON list of objects with `process` ("engine_0", "learner_1", "driver"), `phase`,
`action`, and `once`, a path: the first process to get there creates it and suffers the fault, those after it do not.
Optional: `at`, the how-manieth arrival of the process at the phase after the order was given (1), `seconds` for "slow".
Without the variable a fault point costs a look at the environment.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

VARIABLE = "MASPO_RL_FAULTS"

_ARRIVALS: Counter[str] = Counter()
"""By the order's `once`."""


def fault_point(process: str, phase: str) -> str | None:
    """Suffers what is ordered for this phase of this process: "kill" (SIGKILL), "stop" (SIGSTOP), "slow" (sleeps),
    "disk_full" (raises OSError); any other action is returned for the caller to do."""
    orders = os.environ.get(VARIABLE)
    if orders is None:
        return None
    here = [
        fault
        for fault in json.loads(Path(orders).read_text())
        if (fault["process"], fault["phase"]) == (process, phase)
    ]
    _ARRIVALS.update(fault["once"] for fault in here)
    for fault in here:
        if _ARRIVALS[fault["once"]] == fault.get("at", 1) and _first(Path(fault["once"])):
            return _suffer(fault)
    return None


def _first(marker: Path) -> bool:
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _suffer(fault: dict[str, Any]) -> str | None:
    match fault["action"]:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "slow":
            time.sleep(fault["seconds"])
        case "disk_full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case action:
            return str(action)
    return None
