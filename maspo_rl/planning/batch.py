"""The arithmetic of a step: what is sampled, how it is cut into updates and micro-batches, what is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maspo_rl.config.derived import batch_sequences, context_tokens, evaluation_data, evaluation_tokens
from maspo_rl.config.schema import Config
from maspo_rl.data import PromptSet
from maspo_rl.objectives.policy_loss import PolicyLoss


@dataclass(frozen=True, slots=True)
class StepShape:
    """A step whose responses all have the largest length; lengths in tokens.

    `responses` counts greedy ones too. A rank's largest micro-batch, of `micro_batches` an update, has `rows` responses
    and `tokens`, prompts and responses together, of which a row is at most `width` long.
    Passes over the whole batch: `forward_passes` for old, reference and observed log-probs, `training_passes` with
    gradient.
    """

    responses: int
    prompt_mean: float
    prompt_longest: int
    rows: int
    tokens: int
    width: int
    micro_batches: int
    forward_passes: float
    training_passes: int


def step_shape(config: Config, loss: PolicyLoss, training: PromptSet | None, *, greedy: bool) -> StepShape:
    """The shape of a step; prompts that could not be read are taken to be as long as is allowed."""
    lengths = [len(prompt.token_ids) for prompt in training or ()] or [config.data.max_prompt_tokens]
    share = max(1, batch_sequences(config) // config.trainer.updates_per_step // config.learner.ranks)
    width = max(lengths) + config.rollout.max_new_tokens
    filled = _micro_batches(config, share, max(lengths))
    rows, tokens = max(filled)
    passes = len(loss.passes)
    own_pass = passes == 1 and not loss.needs_step  # the first update's pass is its old log-probs too
    return StepShape(
        responses=batch_sequences(config) + greedy * config.trainer.prompts_per_step,
        prompt_mean=sum(lengths) / len(lengths),
        prompt_longest=max(lengths),
        rows=rows,
        tokens=tokens,
        width=width,
        micro_batches=len(filled),
        forward_passes=1 - own_pass / config.trainer.updates_per_step + loss.needs_reference + loss.observes_live,
        training_passes=passes,
    )


def _micro_batches(config: Config, share: int, prompt: int) -> list[tuple[int, int]]:
    """(responses, tokens) of each as the learner fills them, group after group; a prompt counts once in each."""
    response, filled = config.rollout.max_new_tokens, list[tuple[int, int]]()
    for number in range(share):
        rows, tokens = filled[-1] if filled else (0, 0)
        cost = response + prompt * (number % config.rollout.samples_per_prompt == 0)
        if filled and tokens + cost <= config.learner.micro_batch_tokens:
            filled[-1] = (rows + 1, tokens + cost)
        else:
            filled.append((1, prompt + response))
    return filled


def batch_section(config: Config, step: StepShape, training: PromptSet | None) -> dict[str, Any]:
    """The step and the run in numbers."""
    trainer, responses = config.trainer, batch_sequences(config)
    updates = trainer.updates_per_step * step.training_passes
    section: dict[str, Any] = {
        "prompts_per_step": trainer.prompts_per_step,
        "responses_per_step": responses,
        "sampled_per_step_at_most": step.responses * (1 + config.algorithm.group_filter.max_refills),
        "updates_per_step": updates,
        "responses_per_update": responses // trainer.updates_per_step,
        "responses_per_update_and_rank": responses // trainer.updates_per_step // config.learner.ranks,
        "micro_batches_per_update_and_rank": step.micro_batches,
        "responses_per_micro_batch": step.rows,
        "passes_without_gradient": round(step.forward_passes, 2),
        "steps": trainer.steps,
        "updates": trainer.steps * updates,
        "responses": trainer.steps * responses,
    }
    if training:
        counts = training.counts.items()
        dropped = [f"{count:,} {name.replace('_', ' ')}" for name, count in counts if count and name != "read"]
        epochs = trainer.steps * trainer.prompts_per_step / len(training)
        section |= {"training_prompts": len(training), "epochs": round(epochs, 2)}
        section["rows_left_out"] = ", ".join(dropped) or "none"
    return section


def lengths_section(config: Config, step: StepShape, positions: int | None) -> dict[str, Any]:
    """Prompt and response against the context, in tokens."""
    return {
        "context": context_tokens(config),
        "positions_of_the_model": positions,
        "prompt_limit": config.data.max_prompt_tokens,
        "prompt_longest": step.prompt_longest,
        "prompt_mean": round(step.prompt_mean, 1),
        "response_limit": config.rollout.max_new_tokens,
        "evaluation_prompt_limit": evaluation_data(config).max_prompt_tokens,
        "evaluation_response_limit": evaluation_tokens(config),
        "micro_batch": config.learner.micro_batch_tokens,
    }
