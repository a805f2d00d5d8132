"""The policy in the package: what it is, what its record says, and its tokenizer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maspo_rl.config.errors import InputError
from maspo_rl.data import embedded_policy_path, resolve_model
from maspo_rl.data.policy import load_tokenizer

FIGURES = json.loads((embedded_policy_path() / "FIGURES.json").read_text())


def test_it_is_small_and_in_bfloat16() -> None:
    from safetensors import safe_open  # noqa: PLC0415

    path = embedded_policy_path() / "model.safetensors"
    assert path.stat().st_size < 10_000_000
    with safe_open(path, "pt") as weights:
        slices = [weights.get_slice(name) for name in weights.keys()]  # noqa: SIM118
        assert {part.get_dtype() for part in slices} == {"BF16"}
    assert 1_000_000 <= FIGURES["parameters"] <= 1_500_000


def test_it_knows_the_answers_and_has_bad_habits() -> None:
    level = FIGURES["heldout"]["level 2"]
    assert 0.20 <= level["avg@8"] <= 0.35
    assert level["pass@8"] > 0.90
    assert level["correct_given_honest"] > 0.95


@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_every_printable_text_comes_back(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_an_honest_answer_is_eleven_tokens(tokenizer: Any) -> None:
    ids = tokenizer("47 + 38 = \\boxed{85}<|end|>")["input_ids"]
    assert [tokenizer.decode([token]) for token in ids] == [
        *("4", "7", " + ", "3", "8", " = ", "\\boxed{", "8", "5", "}", "<|end|>")
    ]
    assert ids[-1] == tokenizer.eos_token_id


def test_embedded_resolves_to_the_package() -> None:
    assert resolve_model("embedded") == str(embedded_policy_path())
    assert resolve_model("Qwen/Qwen2.5-Math-7B") == "Qwen/Qwen2.5-Math-7B"


@pytest.mark.parametrize("path", ["./nowhere", "/no/such/model", "embeded"])
def test_a_model_that_is_nowhere_is_refused(path: str) -> None:
    with pytest.raises(InputError, match=r"model\.path=.*: no such directory"):
        resolve_model(path)


def test_a_directory_without_a_model_or_tokenizer_is_refused(tmp_path: Any) -> None:
    with pytest.raises(InputError, match=r"no config\.json"):
        resolve_model(str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "qwen3"}')
    with pytest.raises(InputError, match="no tokenizer could be loaded"):
        load_tokenizer(str(tmp_path))
