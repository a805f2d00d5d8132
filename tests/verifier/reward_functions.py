"""Reward functions as a user might write them, good and bad."""

from __future__ import annotations

import os
import time


def by_length(output: str, gold: str, dataset: str) -> float:
    return len(output) / 10


def process_id(output: str, gold: str, dataset: str) -> float:
    return float(os.getpid())


def deadly(output: str, gold: str, dataset: str) -> float:
    with open(output, "a", encoding="utf-8") as calls:
        calls.write("called\n")
    os._exit(3)


def sleepy(output: str, gold: str, dataset: str) -> float:
    if output == "sleep":
        time.sleep(60)
    if output == "compute":
        return float(9 ** (9**9) % 7)
    if output == "allocate":
        return float(len(bytearray(8 << 30)))
    if output == "raise":
        raise KeyError("no such thing")
    if output == "die":
        os._exit(3)
    if output == "nan":
        return float("nan")
    return 1.0
