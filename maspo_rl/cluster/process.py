"""What an actor does with its own process."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import sys
from pathlib import Path


def redirect_output(log: Path) -> None:
    """Sends everything this process and its children print to `log`, appending: the terminal is the driver's."""
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    faulthandler.enable()


def give_back_memory() -> None:
    """Gives the kernel what this process has freed, which the C library keeps for it (`placement.KEEP_MEMORY`)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
