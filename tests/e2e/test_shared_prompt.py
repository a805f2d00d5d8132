"""An engine computes a group's prompt once."""

from __future__ import annotations

from typing import Any

import ray
from stack import RunningStack


def test_samples_find_their_prompt_in_the_cache(stack: RunningStack) -> None:
    """All whole blocks of the smallest size that vLLM's kernel for CPUs takes, 32 tokens, by vLLM's own count."""

    def tokens_from_cache(engine: Any) -> list[int]:
        from vllm import SamplingParams  # noqa: PLC0415

        engine._llm.reset_prefix_cache()
        parameters = [SamplingParams(max_tokens=1, seed=seed, detokenize=False) for seed in range(4)]
        prompts = [{"prompt_token_ids": list(range(5, 25)) * 2}] * 4
        return [output.num_cached_tokens for output in engine._llm.generate(prompts, parameters, use_tqdm=False)]

    stack.publish()
    assert ray.get(stack.parts.engines.actors[0].__ray_call__.remote(tokens_from_cache)) == [0, 32, 32, 32]
