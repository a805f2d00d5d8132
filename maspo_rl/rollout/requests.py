"""What is asked of an engine."""

from __future__ import annotations

from dataclasses import dataclass

from maspo_rl.config.schema import Config
from maspo_rl.rollout.sampling import sample_seed
from maspo_rl.types import Prompt


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """How responses are drawn. `top_k` 0 is off; `max_new_tokens` counts the stop token; `seed` is the run's.

    Without `logprobs`, which nobody but the learner reads, an engine does not take the log-softmax of every token.
    """

    temperature: float
    top_p: float
    top_k: int
    max_new_tokens: int
    stop: tuple[str, ...]
    seed: int
    logprobs: bool = True

    @classmethod
    def for_training(cls, config: Config) -> SamplingSettings:
        rollout = config.rollout
        limit, stop = rollout.max_new_tokens, tuple(rollout.stop)
        return cls(rollout.temperature, rollout.top_p, rollout.top_k, limit, stop, config.seed)

    @classmethod
    def for_evaluation(cls, config: Config) -> SamplingSettings:
        limit = config.eval.max_new_tokens or config.rollout.max_new_tokens
        stop = tuple(config.rollout.stop)
        return cls(config.eval.temperature, config.eval.top_p, 0, limit, stop, config.seed, logprobs=False)


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One response to one prompt."""

    prompt_id: str
    prompt_token_ids: tuple[int, ...]
    sample_index: int
    seed: int


def sample_requests(prompts: list[Prompt], samples: int, run_seed: int, step: int) -> list[SampleRequest]:
    """`samples` requests per prompt, prompt by prompt."""
    return [
        SampleRequest(prompt.id, prompt.token_ids, index, sample_seed(run_seed, step, prompt.id, index))
        for prompt in prompts
        for index in range(samples)
    ]
