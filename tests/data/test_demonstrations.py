"""Demonstrations keep problem and response as the file has them, end with the end token, and say what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maspo_rl.config.data import ColumnsConfig, DataConfig
from maspo_rl.config.errors import InputError
from maspo_rl.data import load_demonstrations, load_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> object:
    return load_tokenizer("embedded")


def config_of(path: Path, response: str | None = "solution", limit: int = 32) -> DataConfig:
    rows = [
        {"problem": "1 + 2 = ?", "solution": "1 + 2 = \\boxed{3}"},
        {"problem": "1 + 2 = ?", "solution": "3"},  # a second demonstration of the same problem is kept
        {"problem": "2 + 2 = ?", "solution": "hmm, "},
        {"problem": "4 + 4 = ?", "solution": None},
        {"problem": "4 + 4 = ?", "solution": " "},
        {"problem": "5 + 5 = ?", "solution": "hmm, " * 40},
    ]
    file = path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = ColumnsConfig(response=response)
    return DataConfig(name="local", files=str(file), columns=columns, heldout_share=0.0, max_prompt_tokens=limit)


def test_what_is_in_the_file_is_what_is_learnt(tokenizer: object, tmp_path: Path) -> None:
    kept, left_out = load_demonstrations(config_of(tmp_path), tokenizer, most_tokens=24)
    assert left_out == 3
    texts = [tokenizer.decode(one.token_ids) for one in kept]  # type: ignore[attr-defined]
    assert texts == ["1 + 2 = \\boxed{3}<|end|>", "3<|end|>", "hmm, <|end|>"]
    assert tokenizer.decode(kept[0].prompt.token_ids) == "<|user|>1 + 2 = ?<|end|><|assistant|>"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("response", "limit", "words"),
    [
        (None, 32, "data.columns.response=null"),
        ("solutoin", 32, "did you mean 'solution'"),
        ("solution", 2, "none of the 6 rows"),
    ],
)
def test_what_is_missing_is_named(
    response: str | None, limit: int, words: str, tokenizer: object, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        load_demonstrations(config_of(tmp_path, response, limit), tokenizer, most_tokens=24)
