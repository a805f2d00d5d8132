"""Rollout engines: real vLLM in Ray actors, one process each, behind `EngineGroup`."""

from maspo_rl.rollout.group import EngineGroup
from maspo_rl.rollout.requests import SampleRequest, SamplingSettings

__all__ = ["EngineGroup", "SampleRequest", "SamplingSettings"]
