"""Puts a run together: the actors, connected and ready, for as long as the command lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from maspo_rl.cluster import ActorDied, DeadlineError, engine_places, ray_session
from maspo_rl.config.derived import compute_dtype, context_tokens, transfer_backend
from maspo_rl.config.schema import Config
from maspo_rl.data import resolve_model
from maspo_rl.learner import LearnerGroup, LearnerSettings
from maspo_rl.report.run_directory import RunDirectory
from maspo_rl.rollout import EngineGroup
from maspo_rl.rollout.engine import EngineSettings
from maspo_rl.verifier import Verifier
from maspo_rl.verifier.actor import VerifierActors

# Mean |difference| of log-probs, nats, that rounding alone stays well below.
_LARGEST_GAP = {"float32": 1e-3, "bfloat16": 0.2}


class Stack:
    """The running parts of a run, or of several, one after the other."""

    def __init__(
        self, config: Config, tokenizer: Any, engines: EngineGroup, learners: LearnerGroup, verifier: Verifier
    ) -> None:
        self.engines = engines
        self.learners = learners
        self.verifier = verifier
        self._tokenizer = tokenizer
        self._config = config
        self._version = 0
        self._connect()
        engines.on_replaced = self._supply_replaced

    def begin(self, config: Config) -> None:
        """Fresh learners for another run of the same model on the same machines (`shared_parts`)."""
        self._config = config
        self.learners.begin(learner_settings(config, self._tokenizer))
        self._connect()

    def publish(self, version: int) -> None:
        """Sends the learner's weights to every engine, which confirm version and digest before they sample again."""
        self._version = version
        try:
            self._send()
        except (ActorDied, DeadlineError):
            if not self.engines.replace_lost():
                raise
            self._supply_replaced()

    def restart_learners(self) -> None:
        """New learner processes with the run's first policy, and new engines for those that are lost as well."""
        self.engines.replace_lost()
        self.learners.restart(learner_settings(self._config, self._tokenizer))
        self._connect()

    def _send(self) -> None:
        digest = self.learners.send_weights()
        self.engines.confirm(self._version, digest)

    def _supply_replaced(self) -> None:
        self._connect()
        self._send()

    def _connect(self) -> None:
        backend = transfer_backend(self._config)
        self.learners.connect(backend, self.engines.actors, self._config.rollout.tensor_parallel)


def shared_parts(config: Config) -> tuple[Any, ...]:
    """What two runs must have in common to use one stack."""
    return config.model, config.rollout, config.learner, config.weights, config.verifier, config.cluster


@contextmanager
def running_stack(config: Config, tokenizer: Any, directory: RunDirectory) -> Iterator[Stack]:
    """Ray, learners, engines and verifier, started side by side and connected; all gone on any exit."""
    logs = directory.logs.resolve()
    with ray_session(config.cluster), _verifier(config) as verifier:
        learners = LearnerGroup(config, learner_settings(config, tokenizer), logs)
        # Engines take longest to start: they wait for the learners' places only where they are to share them.
        shared = learners.places if config.cluster.colocate else []
        places = engine_places(config.cluster, config.rollout.engines, config.rollout.tensor_parallel, shared)
        engines = EngineGroup(config, _engine_settings(config), places, logs)
        learners.wait_until_ready()
        engines.wait_until_ready()
        yield Stack(config, tokenizer, engines, learners, verifier)


@contextmanager
def running_learners(config: Config, tokenizer: Any, directory: RunDirectory) -> Iterator[LearnerGroup]:
    """Ray and learners alone; gone on any exit."""
    with ray_session(config.cluster):
        learners = LearnerGroup(config, learner_settings(config, tokenizer), directory.logs.resolve())
        learners.wait_until_ready()
        yield learners


@contextmanager
def running_engines(config: Config, directory: RunDirectory) -> Iterator[tuple[EngineGroup, Verifier]]:
    """Ray, engines with the weights of `model.path` under policy version 0, and the verifier; all gone on any exit."""
    alone = replace(config.cluster, colocate=False)
    with ray_session(alone), _verifier(config) as verifier:
        verifier.start()
        places = engine_places(alone, config.rollout.engines, config.rollout.tensor_parallel, [])
        engines = EngineGroup(config, _engine_settings(config), places, directory.logs.resolve())
        engines.wait_until_ready()
        # The digest of what was received: nothing, as these weights came with the model.
        engines.on_replaced = lambda: engines.confirm(0, None)
        engines.on_replaced()
        yield engines, verifier


def _verifier(config: Config) -> Verifier:
    return VerifierActors(config.verifier) if config.verifier.replicas else Verifier(config.verifier)


def _engine_settings(config: Config) -> EngineSettings:
    return EngineSettings(
        model=resolve_model(config.model.path),
        revision=config.model.revision,
        dtype=compute_dtype(config.model, config.cluster),
        max_context=context_tokens(config),
        transfer_backend=transfer_backend(config),
        rollout=config.rollout,
        seed=config.seed,
        on_gpu=config.cluster.gpus_per_node > 0,
    )


def learner_settings(config: Config, tokenizer: Any) -> LearnerSettings:
    """What a learner rank needs to know of the run."""
    dtype = compute_dtype(config.model, config.cluster)
    return LearnerSettings(
        model=resolve_model(config.model.path),
        revision=config.model.revision,
        dtype=dtype,
        temperature=config.rollout.temperature,
        pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id,
        updates_per_step=config.trainer.updates_per_step,
        total_updates=config.trainer.steps * config.trainer.updates_per_step,
        max_logprob_gap=config.weights.max_logprob_gap or _LARGEST_GAP[dtype],
        algorithm=config.algorithm,
        learner=config.learner,
        optimizer=config.optimizer,
        guards=config.guards,
        on_gpu=config.cluster.gpus_per_node > 0,
    )
