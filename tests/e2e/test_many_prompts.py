"""More prompt tokens at a time than an engine takes in one pass."""

from __future__ import annotations

import random

from stack import RunningStack

from maspo_rl.rollout import SamplingSettings
from maspo_rl.types import Prompt


def test_prompts_of_more_tokens_than_one_pass_of_the_engine_are_all_answered(stack: RunningStack) -> None:
    """vLLM takes 4,096 tokens a pass on a CPU and would cut a prompt in two there, which its seeded sampler does not
    survive: "CPU Generator does not use offset"."""
    generator, length = random.Random(0), stack.config.data.max_prompt_tokens
    prompts = [
        Prompt(str(number), tuple(generator.randrange(10, 100) for _ in range(length)), "", "", "arithmetic")
        for number in range(2 * 4096 // length)
    ]
    sampling = SamplingSettings.for_training(stack.config)
    groups = stack.parts.engines.sample(prompts, 1, sampling, step=1, version=stack.publish())
    assert [rollout.prompt_id for (rollout,) in groups] == [prompt.id for prompt in prompts]
