"""All engines of a run, as one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray

from maspo_rl.cluster import ActorDied, DeadlineError, EnginePlace, actor_environment, wait_for
from maspo_rl.config.derived import engine_threads
from maspo_rl.config.schema import Config
from maspo_rl.rollout.engine import Engine, EngineSettings
from maspo_rl.rollout.requests import SamplingSettings, sample_requests
from maspo_rl.types import Prompt, Rollout

_PING_S = 60.0


class EngineGroup:
    """Starts the engines, spreads requests over them, keeps the order, and replaces an engine that dies.

    Which engine samples which prompt depends on the list of prompts alone, so that a step sampled again, with the
    same weights, gives the same responses. `on_replaced` must give new engines their weights.
    """

    def __init__(self, config: Config, settings: EngineSettings, places: list[EnginePlace], logs: Path) -> None:
        self.timeout_s = config.rollout.timeout_s
        self._start_timeout_s = config.cluster.start_timeout_s
        self._restarts_left = config.cluster.max_restarts
        self._environment = actor_environment(config.cluster, engine_threads(config.rollout))
        self._settings = settings
        self._places = places
        self._logs = logs
        self.actors: list[Any] = [self._start(index) for index in range(len(places))]
        self.on_replaced: Callable[[], None] | None = None

    def _start(self, index: int) -> Any:
        place = self._places[index]
        options = {"runtime_env": {"env_vars": self._environment}, "max_restarts": 0} | place.options
        log = self._logs / f"engine_{index}.log"
        return ray.remote(Engine).options(**options).remote(self._settings, log, place.devices)

    def wait_until_ready(self) -> list[int]:
        """Process ids of the engines, once all stand."""
        ready = [actor.ready.remote() for actor in self.actors]
        seconds, key = self._start_timeout_s, "cluster.start_timeout_s"
        return list(wait_for(ready, seconds=seconds, who="rollout engine", what="start", remedy=key))

    def confirm(self, version: int, digest: str | None) -> None:
        """Every engine holds exactly the weights that were sent as `version`, or StaleWeights is raised."""
        confirmations = [actor.confirm.remote(version, digest) for actor in self.actors]
        what, key = f"confirm version {version}", "rollout.timeout_s"
        wait_for(confirmations, seconds=self.timeout_s, who="rollout engine", what=what, remedy=key)

    def sample(
        self, prompts: list[Prompt], samples: int, sampling: SamplingSettings, *, step: int, version: int
    ) -> list[list[Rollout]]:
        """`samples` rollouts per prompt, in the prompts' order; seeds depend on (run seed, step, prompt, index).

        The share of an engine that dies, or that does not answer in time, is asked again of its successor, in the same
        batch; the engines that may be replaced over a run are limited (`cluster.max_restarts`).
        """
        shares = [prompts[index :: len(self.actors)] for index in range(len(self.actors))]
        answers: dict[int, list[Rollout]] = {}
        while missing := [index for index, share in enumerate(shares) if share and index not in answers]:
            references = {
                index: self.actors[index].generate.remote(
                    sample_requests(shares[index], samples, sampling.seed, step), sampling, version
                )
                for index in missing
            }
            found, lost = self._gather(references, self.timeout_s, "generate")
            answers |= found
            if lost:
                self._replace(lost)
        groups: list[list[Rollout]] = [[] for _ in prompts]
        for engine, rollouts in answers.items():
            for position in range(0, len(rollouts), samples):
                groups[engine + position // samples * len(self.actors)] = rollouts[position : position + samples]
        return groups

    def replace_lost(self) -> int:
        """Replaces the engines that are dead or silent; their number. They have no weights of ours yet."""
        pings = {index: actor.ready.remote() for index, actor in enumerate(self.actors)}
        _, lost = self._gather(pings, min(_PING_S, self.timeout_s), "answer")
        if lost:
            self._restart(lost)
        return len(lost)

    def _gather(
        self, references: dict[int, Any], seconds: float, what: str
    ) -> tuple[dict[int, Any], dict[int, ActorDied | DeadlineError]]:
        """Results, and failures, by engine, within `seconds` for all of them."""
        deadline = time.monotonic() + seconds
        found: dict[int, Any] = {}
        lost: dict[int, ActorDied | DeadlineError] = {}
        for index, reference in references.items():
            left = max(deadline - time.monotonic(), 0.0)
            try:
                found[index] = wait_for(
                    reference,
                    seconds=left,
                    limit=seconds,
                    who=f"rollout engine {index}",
                    what=what,
                    remedy="rollout.timeout_s",
                )
            except (ActorDied, DeadlineError) as failure:
                lost[index] = failure
        return found, lost

    def _replace(self, lost: dict[int, ActorDied | DeadlineError]) -> None:
        if self.on_replaced is None:
            raise next(iter(lost.values()))
        self._restart(lost)
        self.on_replaced()

    def _restart(self, lost: dict[int, ActorDied | DeadlineError]) -> None:
        for index, failure in lost.items():
            if not self._restarts_left:
                raise failure
            self._restarts_left -= 1
            logging.getLogger(__name__).warning("%s; starting another (%d left)", failure, self._restarts_left)
            ray.kill(self.actors[index])
            self.actors[index] = self._start(index)
        self.wait_until_ready()
