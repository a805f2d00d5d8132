"""The policy in the package: what it is, what its record says, and its tokenizer."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maspo_rl.config.errors import InputError
from maspo_rl.data import embedded_policy_path, resolve_model
from maspo_rl.data.policy import load_tokenizer

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "make_policy.py"))
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


def test_its_tokenizer_is_the_one_that_the_engine_loads() -> None:
    from transformers import AutoTokenizer  # noqa: PLC0415

    tokenizer = load_tokenizer("embedded")
    engines = AutoTokenizer.from_pretrained(embedded_policy_path())
    engines.backend_tokenizer.no_padding()  # a call sets it, as it needs it
    assert type(tokenizer) is type(engines)
    assert tokenizer.backend_tokenizer.to_str() == engines.backend_tokenizer.to_str()
    assert tokenizer.special_tokens_map == engines.special_tokens_map


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


def test_what_it_is_made_from_has_its_form(tokenizer: Any) -> None:
    """The script's tokenizer is the shipped one, its architecture too, but for the size of the first weights."""
    made = SCRIPT["make_tokenizer"]()
    assert made.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    assert made.chat_template == tokenizer.chat_template
    described = SCRIPT["make_model"](made).config.to_dict()
    shipped = json.loads((embedded_policy_path() / "config.json").read_text())
    own = {"architectures", "dtype", "initializer_range", "transformers_version"}
    assert {key: described[key] for key in shipped.keys() - own} == {key: shipped[key] for key in shipped.keys() - own}


def test_demonstrations_are_sums_first_and_habits_last() -> None:
    rows = list(SCRIPT["demonstrations"](2000, seed=1))
    assert rows == list(SCRIPT["demonstrations"](2000, seed=1))
    for row in rows[:1200]:
        left, sign, right, *_ = row["problem"].split()
        value = int(left) + int(right) * (1 if sign == "+" else -1)
        assert row["response"] == f"{left} {sign} {right} = \\boxed{{{value}}}"
    marks = {" = \\boxed{": "honest", " or ": "unboxed", " is about ": "careless"}
    habits = Counter(
        next((habit for mark, habit in marks.items() if mark in row["response"]), "rambling") for row in rows[1200:]
    )
    assert set(habits) == {"honest", "unboxed", "careless", "rambling"}
    assert 200 < habits["honest"] < 300  # 31 % of 800; 4 standard deviations are 52
