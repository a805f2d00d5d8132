"""Traps that tokenizer, chat template and generation config set together, on the embedded policy's tokenizer."""

from __future__ import annotations

from typing import Any

import pytest

from maspo_rl.config.load import load
from maspo_rl.data import load_tokenizer
from maspo_rl.planning.model import token_warnings, tokens_section

PAD, END = 0, 1


@pytest.fixture
def tokenizer() -> Any:
    """116 tokens, `<|end|>` (1) ends a turn and a text, `<|pad|>` (0) pads."""
    return load_tokenizer("embedded")


def warnings(tokenizer: Any, declared: list[int], *overrides: str, vocabulary: int = 116) -> list[str]:
    return list(token_warnings(load(list(overrides)), tokenizer, declared, vocabulary))


def test_the_embedded_policy_has_no_trap(tokenizer: Any) -> None:
    assert warnings(tokenizer, [END]) == []
    section = tokens_section(load([]), tokenizer, [END], 116)
    assert section["response_ends_at"] == section["tokenizer_end"] == "<|end|> (1)"
    assert section["padding"] == "<|pad|> (0)"
    assert section["generation_prompt"] == "<|assistant|>"


def test_a_base_model_that_ends_its_turns_with_another_token(tokenizer: Any) -> None:
    """Qwen2.5's base models: <|endoftext|> for tokenizer and generation config, <|im_end|> in the template."""
    tokenizer.eos_token = "<|pad|>"
    (warning,) = warnings(tokenizer, [PAD])
    assert "ends a turn with <|end|> (1), which ends no response (<|pad|> (0) do)" in warning


def test_two_ends_that_differ(tokenizer: Any) -> None:
    """The engine stops at both, so that only the difference is told."""
    tokenizer.eos_token = "<|pad|>"
    (warning,) = warnings(tokenizer, [END])
    assert warning.startswith("two ends: the tokenizer's <|pad|> (0) is not among generation_config.json's <|end|> (1)")
    assert tokens_section(load([]), tokenizer, [END], 116)["response_ends_at"] == "<|pad|> (0), <|end|> (1)"


def test_a_template_that_opens_no_turn(tokenizer: Any) -> None:
    tokenizer.chat_template = "{% for m in messages %}<|user|>{{ m['content'] }}<|end|>{% endfor %}"
    assert [line for line in warnings(tokenizer, [END]) if "ignores add_generation_prompt" in line]


def test_the_tokenizer_of_another_model(tokenizer: Any) -> None:
    (warning,) = warnings(tokenizer, [END], vocabulary=100)
    assert warning.startswith("the tokenizer has 116 tokens, the model 100 rows")


def test_no_end_at_all(tokenizer: Any) -> None:
    tokenizer.eos_token = None
    (warning,) = warnings(tokenizer, [], "data.template=plain", "data.plain_template='{problem}'")
    assert "every response runs to the limit" in warning
