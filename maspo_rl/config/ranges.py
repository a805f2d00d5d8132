"""The values that each key may take by itself, whatever the other keys say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

from maspo_rl.config.keys import leaves
from maspo_rl.config.schema import Config

_AT_LEAST_ONE = (
    "data.max_prompt_tokens",
    "rollout.samples_per_prompt",
    "rollout.max_new_tokens",
    "rollout.engines",
    "rollout.tensor_parallel",
    "rollout.max_context",
    "rollout.max_sequences",
    "rollout.threads",
    "learner.ranks",
    "learner.micro_batch_tokens",
    "learner.threads",
    "trainer.steps",
    "trainer.prompts_per_step",
    "trainer.updates_per_step",
    "checkpoint.keep",
    "eval.problems",
    "eval.samples",
    "eval.max_new_tokens",
    "cluster.nodes",
)
_AT_LEAST_ZERO = (
    "seed",
    "rollout.top_k",
    "optimizer.weight_decay",
    "optimizer.warmup_steps",
    "checkpoint.every",
    "eval.every",
    "eval.temperature",
    "cluster.gpus_per_node",
    "cluster.max_restarts",
    "algorithm.group_filter.max_refills",
    "algorithm.overlong.factor",
    "report.samples_per_step",
)
_ABOVE_ZERO = (
    "rollout.temperature",
    "rollout.kv_cache_gib",
    "rollout.timeout_s",
    "learner.timeout_s",
    "optimizer.eps",
    "optimizer.max_grad_norm",
    "weights.max_logprob_gap",
    "cluster.start_timeout_s",
)
_SHARES = ("rollout.top_p", "eval.top_p", "rollout.gpu_memory_fraction")

_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(_AT_LEAST_ONE, (lambda value: value >= 1, "at least 1")),
    **dict.fromkeys(_AT_LEAST_ZERO, (lambda value: value >= 0, "at least 0")),
    **dict.fromkeys(_ABOVE_ZERO, (lambda value: value > 0, "above 0")),
    **dict.fromkeys(_SHARES, (lambda value: 0 < value <= 1, "above 0 and at most 1")),
    # 0 trains nothing: what engine and learner disagree on at 0 is the noise of the machinery.
    "optimizer.lr": (lambda value: value >= 0, "at least 0"),
    "optimizer.betas": (lambda pair: len(pair) == 2 and all(0 <= beta < 1 for beta in pair), "two numbers in [0, 1)"),
    "verifier.port": (lambda value: 0 <= value < 1 << 16, "a port, 0 to 65535"),
    "learner.zero_stage": (lambda value: value in range(4), "0, 1, 2 or 3"),
}


def out_of_range(config: Config) -> Iterator[str]:
    """One line for each key whose value no run can use. Null is left to the key's own meaning."""
    for key, field in leaves():
        value = value_at(config, key)
        allowed = field.metadata.get("choices")
        if allowed and value not in allowed:
            yield f"{key}={value}: must be one of {', '.join(allowed)}"
        if isinstance(value, float) and not math.isfinite(value):
            yield f"{key}={value}: must be a finite number"
        elif value is not None and key in _RULES and not _RULES[key][0](value):
            yield f"{key}={value}: must be {_RULES[key][1]}"


def value_at(config: Config, key: str) -> Any:
    """The value of a dotted key."""
    return reduce(getattr, key.split("."), config)
