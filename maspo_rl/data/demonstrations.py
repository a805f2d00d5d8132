"""Problems with responses to learn from, for the supervised step before reinforcement learning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maspo_rl.config.data import DataConfig
from maspo_rl.config.errors import InputError
from maspo_rl.data import arithmetic
from maspo_rl.data.columns import problem_text, value_at
from maspo_rl.data.loading import ARITHMETIC, ARITHMETIC_TRAIN, prompt_id, source_rows
from maspo_rl.data.template import render
from maspo_rl.types import Prompt


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A prompt and the token ids of a response to it, end token included."""

    prompt: Prompt
    token_ids: tuple[int, ...]


def load_demonstrations(config: DataConfig, tokenizer: Any, *, most_tokens: int) -> tuple[list[Demonstration], int]:
    """The demonstrations of the training split, and how many were left out.

    Left out are prompts over `data.max_prompt_tokens`, responses over `most_tokens`, and rows without either text.
    Arithmetic demonstrates itself: `47 + 38 = \\boxed{85}`. Raises InputError where none is left.
    """
    pairs = list(_pairs(config))[: config.problems]
    prompts = render([problem for problem, _ in pairs], config, tokenizer)
    responses = tokenizer([response for _, response in pairs], add_special_tokens=False)["input_ids"] if pairs else []
    end = tokenizer.eos_token_id
    kept = [
        Demonstration(
            Prompt(prompt_id(config.name, problem, response), prompt_ids, problem, response, config.name), (*ids, end)
        )
        for (problem, response), prompt_ids, ids in zip(pairs, prompts, responses, strict=True)
        if problem and response.strip() and len(prompt_ids) <= config.max_prompt_tokens and len(ids) < most_tokens
    ]
    if not kept:
        raise InputError(
            f"data.columns.response={config.columns.response}: none of the {len(pairs)} rows of '{config.name}' has a "
            f"problem and a response within data.max_prompt_tokens={config.max_prompt_tokens} and "
            f"rollout.max_new_tokens={most_tokens}; name the column of the response, or raise the limits"
        )
    return kept, len(pairs) - len(kept)


def _pairs(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Problem and response."""
    if config.name == ARITHMETIC:
        levels = [int(level) for level in config.levels] or list(arithmetic.LEVELS)
        for problem in arithmetic.distinct(levels, "train", seed=0, size=ARITHMETIC_TRAIN):
            yield problem.text, f"{problem.text.removesuffix(' = ?')} = \\boxed{{{problem.gold}}}"
        return
    column = config.columns.response
    if column is None:
        raise InputError(f"data.columns.response=null: name the column of '{config.name}' that holds the responses")
    for place, row in source_rows(config, "train"):
        response = value_at(row, column, "data.columns.response", place)
        if response is not None and not isinstance(response, str):
            raise InputError(f"data.columns.response={column}: {place} holds {response!r:.60} there and must hold text")
        yield problem_text(row, config, place), response or ""
