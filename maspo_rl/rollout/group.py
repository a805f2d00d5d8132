"""All engines of a run, as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ray

from maspo_rl.cluster import EnginePlace, actor_environment, wait_for
from maspo_rl.config.schema import Config
from maspo_rl.rollout.engine import Engine, EngineSettings
from maspo_rl.rollout.requests import SamplingSettings, sample_requests
from maspo_rl.types import Prompt, Rollout


class EngineGroup:
    """Starts the engines, spreads requests over them, and keeps the order.

    Which engine samples which prompt depends on the list of prompts alone, so that a step sampled again, with the
    same weights, gives the same responses.
    """

    def __init__(self, config: Config, settings: EngineSettings, places: list[EnginePlace], logs: Path) -> None:
        self._timeout_s = config.rollout.timeout_s
        environment = actor_environment(config.cluster, config.rollout.threads)
        actor = ray.remote(Engine)
        self.actors: list[Any] = [
            actor.options(runtime_env={"env_vars": environment}, max_restarts=0, **place.options).remote(
                settings, logs / f"engine_{index}.log", place.devices
            )
            for index, place in enumerate(places)
        ]

    def wait_until_ready(self) -> list[int]:
        """Process ids of the engines, once all stand."""
        ready = [actor.ready.remote() for actor in self.actors]
        return list(wait_for(ready, seconds=self._timeout_s, who="rollout engines", what="start"))

    def confirm(self, version: int, digest: str) -> None:
        """Every engine holds exactly the weights that were sent as `version`, or StaleWeights is raised."""
        confirmations = [actor.confirm.remote(version, digest) for actor in self.actors]
        wait_for(confirmations, seconds=self._timeout_s, who="rollout engines", what=f"confirm version {version}")

    def sample(
        self, prompts: list[Prompt], samples: int, sampling: SamplingSettings, *, step: int, version: int
    ) -> list[list[Rollout]]:
        """`samples` rollouts per prompt, in the prompts' order; seeds depend on (run seed, step, prompt, index)."""
        shares = [prompts[index :: len(self.actors)] for index in range(len(self.actors))]
        references = [
            actor.generate.remote(sample_requests(share, samples, sampling.seed, step), sampling, version)
            for actor, share in zip(self.actors, shares, strict=True)
            if share
        ]
        answers = wait_for(references, seconds=self._timeout_s, who="rollout engines", what=f"sampling of step {step}")
        groups: list[list[Rollout]] = [[] for _ in prompts]
        for engine, rollouts in enumerate(answers):
            for position in range(0, len(rollouts), samples):
                groups[engine + position // samples * len(self.actors)] = rollouts[position : position + samples]
        return groups
