"""The verifier's counters."""

from __future__ import annotations

import threading
from collections import Counter

from maspo_rl.types import Label

MOST_EXAMPLES = 10


class Counts:
    """Thread-safe counts of labels and of the ways that led to them, with examples of faults."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._labels: Counter[str] = Counter({label.value: 0 for label in Label})
        self._events: Counter[str] = Counter(
            {"quick": 0, "cached": 0, "shared": 0, "worker": 0, "nothing_extracted": 0}
        )
        self._examples: list[str] = []

    def add(self, event: str) -> None:
        with self._lock:
            self._events[event] += 1

    def label(self, label: Label) -> None:
        with self._lock:
            self._labels[label.value] += 1

    def fault(self, label: Label, example: str) -> None:
        with self._lock:
            self._labels[label.value] += 1
            if len(self._examples) < MOST_EXAMPLES:
                self._examples.append(example)

    def snapshot(self) -> dict[str, int]:
        with self._lock:
            return dict(self._labels) | dict(self._events)

    def fault_share(self) -> float:
        with self._lock:
            total = sum(self._labels.values())
            return (self._labels[Label.TIMEOUT.value] + self._labels[Label.ERROR.value]) / total if total else 0.0

    def examples(self) -> list[str]:
        with self._lock:
            return list(self._examples)
