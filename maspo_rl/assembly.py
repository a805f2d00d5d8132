"""Puts a run together: the actors, connected and ready, for as long as the command lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from maspo_rl.cluster import engine_places, ray_session
from maspo_rl.cluster.precision import compute_dtype
from maspo_rl.config.derived import context_tokens
from maspo_rl.config.schema import Config
from maspo_rl.data import resolve_model
from maspo_rl.learner import LearnerGroup, LearnerSettings
from maspo_rl.report.run_directory import RunDirectory
from maspo_rl.rollout import EngineGroup
from maspo_rl.rollout.engine import EngineSettings
from maspo_rl.verifier import Verifier

# Mean |difference| of log-probs, nats, that rounding alone stays well below.
_LARGEST_GAP = {"float32": 1e-3, "bfloat16": 0.2}


@dataclass(frozen=True)
class Stack:
    """The running parts of a run."""

    engines: EngineGroup
    learners: LearnerGroup
    verifier: Verifier


@contextmanager
def running_stack(config: Config, tokenizer: Any, directory: RunDirectory) -> Iterator[Stack]:
    """Ray, learners, engines and verifier, started side by side and connected; all gone on any exit."""
    model = resolve_model(config.model.path)
    dtype = compute_dtype(config.model, config.cluster)
    backend = _transfer_backend(config)
    logs = directory.logs.resolve()
    with ray_session(config.cluster), Verifier(config.verifier) as verifier:
        learners = LearnerGroup(config, learner_settings(config, model, dtype, tokenizer), logs)
        places = engine_places(config.cluster, config.rollout.engines, config.rollout.tensor_parallel, learners.places)
        engines = EngineGroup(config, _engine_settings(config, model, dtype, backend), places, logs)
        learners.wait_until_ready()
        engines.wait_until_ready()
        learners.connect(backend, engines.actors, config.rollout.tensor_parallel)
        yield Stack(engines, learners, verifier)


def _transfer_backend(config: Config) -> str:
    if config.weights.backend != "auto":
        return config.weights.backend
    if config.cluster.gpus_per_node == 0:
        return "shared_memory"
    return "ipc" if config.cluster.colocate else "nccl"


def _engine_settings(config: Config, model: str, dtype: str, backend: str) -> EngineSettings:
    return EngineSettings(
        model=model,
        revision=config.model.revision,
        dtype=dtype,
        max_context=context_tokens(config),
        transfer_backend=backend,
        rollout=config.rollout,
        seed=config.seed,
        on_gpu=config.cluster.gpus_per_node > 0,
    )


def learner_settings(config: Config, model: str, dtype: str, tokenizer: Any) -> LearnerSettings:
    """What a learner rank needs to know of the run."""
    return LearnerSettings(
        model=model,
        revision=config.model.revision,
        dtype=dtype,
        attention=config.model.attention,
        temperature=config.rollout.temperature,
        pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id,
        updates_per_step=config.trainer.updates_per_step,
        total_updates=config.trainer.steps * config.trainer.updates_per_step,
        max_logprob_gap=config.weights.max_logprob_gap or _LARGEST_GAP[dtype],
        algorithm=config.algorithm,
        learner=config.learner,
        optimizer=config.optimizer,
        on_gpu=config.cluster.gpus_per_node > 0,
    )
