"""Helpers of the end-to-end tests."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from maspo_rl.assembly import Stack
from maspo_rl.config.load import load
from maspo_rl.config.schema import Config
from maspo_rl.learner import SequenceBatch
from maspo_rl.rollout import SamplingSettings
from maspo_rl.types import Group, Prompt

_VERSIONS = count()
_FAULTS = count()


def quickstart(directory: Path, *overrides: str) -> Config:
    """The quickstart's configuration with a run directory of its own, in float32 on any machine: in bfloat16 rounding
    hides what these tests look for."""
    own = (f"run.dir={directory}", "run.name=test", "model.dtype=float32")
    return load(["experiment=quickstart", *own, *overrides])


@dataclass
class RunningStack:
    """The session's engine and learner, used by one test after the other."""

    config: Config
    parts: Stack
    prompts: list[Prompt]
    end_token_id: int
    orders: Path

    def begin(self) -> None:
        """Gives the learner its first policy again, for whoever comes next."""
        self.parts.begin(self.config)

    def order(self, *faults: tuple[str, str, str, int]) -> list[Path]:
        """Orders faults (process, phase, action, at), in place of those ordered before; the paths that exist once they
        have happened. See `maspo_rl.cluster.faults`."""
        markers = [self.orders.parent / f"fault_{next(_FAULTS)}" for _ in faults]
        names = ("process", "phase", "action", "at")
        rows = [
            dict(zip(names, fault, strict=True)) | {"once": str(once)}
            for fault, once in zip(faults, markers, strict=True)
        ]
        self.orders.write_text(json.dumps(rows))
        return markers

    def publish(self) -> int:
        """Sends the learner's weights to the engine under a version of their own."""
        version = next(_VERSIONS)
        self.parts.engines.confirm(version, self.parts.learners.send_weights())
        return version

    def sample(self, version: int, step: int = 1) -> list[Group]:
        """The groups of a step, unjudged."""
        prompts = self.prompts[: self.config.trainer.prompts_per_step]
        rollouts = self.parts.engines.sample(
            prompts,
            self.config.rollout.samples_per_prompt,
            SamplingSettings.for_training(self.config),
            step=step,
            version=version,
        )
        return [Group(prompt, tuple(own), (), ()) for prompt, own in zip(prompts, rollouts, strict=True)]


def sequence_batch(groups: list[Group], seed: int) -> SequenceBatch:
    """Random advantages of +-1 on the groups' rollouts."""
    generator = random.Random(seed)
    samples = sum(len(group.rollouts) for group in groups)
    return SequenceBatch.build(groups, [generator.choice((-1.0, 1.0)) for _ in range(samples)])
