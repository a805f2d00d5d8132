"""Prompts in a seeded order that survives a restart, each at most once a step."""

from __future__ import annotations

from typing import Any

from maspo_rl.data.loading import PromptSet
from maspo_rl.data.sampler import PromptSampler
from maspo_rl.types import Prompt


class PromptStream:
    """An endless stream over a prompt set: an epoch after another, nothing skipped, nothing twice in a step.

    Prompts given back, and those that an epoch's end would bring twice in one step, come first in a later step.
    """

    def __init__(self, prompts: PromptSet, seed: int, *, shuffle: bool) -> None:
        self._prompts = prompts
        self._sampler = PromptSampler(len(prompts), seed, shuffle=shuffle)
        self._waiting: list[int] = []
        self._taken: dict[str, int] = {}

    def begin_step(self) -> None:
        """From here on prompts of earlier steps may come again."""
        self._taken = {}

    def take(self, count: int) -> list[Prompt]:
        """The next `count` prompts. Raises ValueError when a step asks for more prompts than there are."""
        if len(self._taken) + count > len(self._prompts):
            raise ValueError(
                f"a step asked for {len(self._taken) + count} different prompts, the data has {len(self._prompts)}; "
                f"lower trainer.prompts_per_step or algorithm.group_filter.max_refills"
            )
        chosen: list[Prompt] = []
        queue, self._waiting = self._waiting, []
        while len(chosen) < count:
            index = queue.pop(0) if queue else self._sampler.next(1)[0]
            prompt = self._prompts[index]
            if prompt.id in self._taken:
                self._waiting.append(index)
                continue
            self._taken[prompt.id] = index
            chosen.append(prompt)
        self._waiting += queue
        return chosen

    def give_back(self, prompts: list[Prompt]) -> None:
        """Prompts of this step that were not trained on; they come again."""
        self._waiting += [self._taken[prompt.id] for prompt in prompts]

    def state_dict(self) -> dict[str, Any]:
        """JSON-compatible state between two steps."""
        return {"sampler": self._sampler.state_dict(), "waiting": list(self._waiting)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""
        self._sampler.load_state_dict(state["sampler"])
        self._waiting = list(state["waiting"])
