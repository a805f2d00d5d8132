"""A seeded order over a data set that goes on, after a restart, exactly where it stopped."""

from __future__ import annotations

import random
from typing import Any

from maspo_rl.config.errors import InputError


class PromptSampler:
    """Indices 0..size-1, epoch after epoch, each index once an epoch; with `shuffle` every epoch in a fresh order.

    The order is a pure function of (size, seed, epoch). It rests on `random.Random.random()` alone, whose sequence
    Python guarantees across versions. Raises ValueError for a size below 1.
    """

    def __init__(self, size: int, seed: int, *, shuffle: bool = True) -> None:
        if size < 1:
            raise ValueError(f"size={size}: a sampler needs at least one prompt")
        self._identity = {"size": size, "seed": seed, "shuffle": shuffle}
        self._epoch = 0
        self._position = 0
        self._order = self._permutation()

    def next(self, count: int) -> list[int]:
        """The next `count` indices; runs over the end of an epoch into the next."""
        taken: list[int] = []
        while len(taken) < count:
            if self._position == len(self._order):
                self._epoch, self._position = self._epoch + 1, 0
                self._order = self._permutation()
            part = self._order[self._position : self._position + count - len(taken)]
            self._position += len(part)
            taken += part
        return taken

    def state_dict(self) -> dict[str, Any]:
        """JSON-compatible."""
        return {**self._identity, "epoch": self._epoch, "position": self._position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave. Raises InputError where it belongs to other data or another seed."""
        for name, value in self._identity.items():
            if state[name] != value:
                raise InputError(
                    f"the checkpoint's data order has {name}={state[name]}, this run {value}: data and seed of a run "
                    "must not change when it is resumed; restore them or start a new run"
                )
        self._epoch, self._position = state["epoch"], state["position"]
        self._order = self._permutation()

    def _permutation(self) -> list[int]:
        indices = range(int(self._identity["size"]))
        if not self._identity["shuffle"]:
            return list(indices)
        generator = random.Random(f"{self._identity['seed']} {self._epoch}")
        keys = [generator.random() for _ in indices]
        return sorted(indices, key=keys.__getitem__)
