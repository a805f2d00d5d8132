"""Ray's start and end, where actors lie, and the deadline that every wait on them has."""

from maspo_rl.cluster.deadline import ActorDied, ActorFailure, DeadlineError, at_step, wait_for
from maspo_rl.cluster.placement import EnginePlace, actor_environment, engine_places
from maspo_rl.cluster.session import ray_session

__all__ = [
    "ActorDied",
    "ActorFailure",
    "DeadlineError",
    "EnginePlace",
    "actor_environment",
    "at_step",
    "engine_places",
    "ray_session",
    "wait_for",
]
