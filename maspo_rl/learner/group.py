"""All learner ranks of a run, as one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import ray

from maspo_rl.cluster import actor_environment, wait_for
from maspo_rl.config.schema import Config
from maspo_rl.learner.batch import SequenceBatch
from maspo_rl.learner.rank import LearnerRank, LearnerSettings


class LearnerGroup:
    """Starts the ranks and drives them through the same calls at the same time."""

    def __init__(self, config: Config, settings: LearnerSettings, logs: Path) -> None:
        self.timeout_s = config.learner.timeout_s
        self._start_timeout_s = config.cluster.start_timeout_s
        self._threads = config.learner.threads or max(1, (os.cpu_count() or 1) // config.learner.ranks)
        self._environment = actor_environment(config.cluster, self._threads)
        self._logs = logs
        self._launch(settings)

    def _launch(self, settings: LearnerSettings) -> None:
        gpus = 1 if settings.on_gpu else 0
        options = {"runtime_env": {"env_vars": self._environment}, "max_restarts": 0}
        actor = ray.remote(LearnerRank).options(num_cpus=gpus, num_gpus=gpus, **options)
        self._actors: list[Any] = [
            actor.remote(settings, rank, self._threads, self._logs / f"learner_{rank}.log")
            for rank in range(settings.learner.ranks)
        ]
        self._placing = [rank.place.remote() for rank in self._actors]
        self._started: list[Any] = []

    def restart(self, settings: LearnerSettings) -> None:
        """New processes in place of the present ones, dead or alive, with a fresh policy."""
        self.end()
        self._launch(settings)
        self.wait_until_ready()

    @property
    def places(self) -> list[tuple[str, str]]:
        """(node id, device id) of each rank."""
        return [(node, device) for node, device, _, _ in self._starting("place", self._placing)]

    def wait_until_ready(self) -> list[int]:
        """Process ids of the ranks, once all stand. The first call has them join each other and load the policy."""
        if not self._started:
            *_, address, port = self._starting("place", self._placing)[0]
            self._started = [rank.start.remote(address, port) for rank in self._actors]
        return self._starting("start", self._started)

    def begin(self, settings: LearnerSettings) -> None:
        """Another run on the same processes: a fresh policy, optimiser and objective. `connect` again afterwards."""
        self._all("begin", settings)

    def connect(self, backend: str, engines: list[Any], tensor_parallel: int) -> None:
        """Opens the weight transfer from the ranks to the engines."""
        self._all("connect", backend, engines, tensor_parallel, self.timeout_s)

    def send_weights(self) -> str:
        """Sends the present weights to every engine; the digest of what was sent."""
        return str(self._all("send_weights")[0])

    def step(self, batch: SequenceBatch) -> dict[str, float]:
        """All updates on one rollout batch; rank 0's metrics, which are those of all ranks."""
        return dict(self._all("step", ray.put(batch))[0])

    def save(self, directory: Path) -> None:
        """Every rank writes its share of a checkpoint into `directory`."""
        self._all("save", directory, told=f"save {directory}")

    def load(self, directory: Path) -> None:
        """Every rank takes its share back from `directory`."""
        self._all("load", directory)

    def end(self) -> None:
        """Ends the ranks' processes."""
        for rank in self._actors:
            ray.kill(rank)

    def _all(self, method: str, *arguments: Any, told: str | None = None) -> list[Any]:
        references = [getattr(rank, method).remote(*arguments) for rank in self._actors]
        what, key = told or method, "learner.timeout_s"
        return list(wait_for(references, seconds=self.timeout_s, who="learner rank", what=what, remedy=key))

    def _starting(self, what: str, references: list[Any]) -> list[Any]:
        seconds, key = self._start_timeout_s, "cluster.start_timeout_s"
        return list(wait_for(references, seconds=seconds, who="learner rank", what=what, remedy=key))
