"""Faults on order, so that tests can kill, stop or corrupt a named process at a named phase.

`MASPO_RL_FAULTS` holds a JSON list of objects with `process` ("engine_0", "learner_1", "driver"), `phase`, `action`,
and `once`, a path: the first process to get there creates it and suffers the fault, those after it do not. Optional:
`at`, the how-manieth arrival of the process at the phase (1), `seconds` for "slow". Without the variable a fault point
costs a comparison.
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

_FAULTS: list[dict[str, Any]] = json.loads(os.environ.get(VARIABLE, "[]"))
_ARRIVALS: Counter[tuple[str, str]] = Counter()


def fault_point(process: str, phase: str) -> str | None:
    """Suffers what is ordered for this phase of this process: "kill" (SIGKILL), "stop" (SIGSTOP), "slow" (sleeps),
    "disk_full" (raises OSError); any other action is returned for the caller to do."""
    if not _FAULTS:
        return None
    _ARRIVALS[process, phase] += 1
    for fault in _FAULTS:
        here = (fault["process"], fault["phase"]) == (process, phase)
        if here and _ARRIVALS[process, phase] == fault.get("at", 1) and _first(Path(fault["once"])):
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
