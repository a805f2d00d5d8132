"""Every wrong input is one line that names the value, the rule and the remedy, before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maspo_rl.config.data import ColumnsConfig, DataConfig
from maspo_rl.config.errors import InputError
from maspo_rl.data import load_prompts, load_tokenizer

Jsonl = Callable[..., str]
ROW = {"problem": "1 + 1 = ?", "answer": "2"}


def refused(config: DataConfig, model: str = "embedded", split: Any = "train") -> str:
    """The message with which loading refuses."""
    with pytest.raises(InputError) as caught:
        load_prompts(config, load_tokenizer(model), split=split, limit=None)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def local(files: Any, **changes: Any) -> DataConfig:
    return DataConfig(**{"name": "mine", "files": files, "heldout_share": 0.0, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"template": "caht"}, "data.template=caht: must be chat or plain"),
        ({"template": "plain", "plain_template": "Q:"}, "must hold {problem} once"),
        ({"template": "plain", "system": "x"}, "belongs to data.template=chat"),
        ({"max_prompt_tokens": 0}, "data.max_prompt_tokens=0: must be at least 1"),
        ({"problems": 0}, "data.problems=0: must be at least 1"),
        ({"heldout_share": 1.0}, "data.heldout_share=1.0: must be at least 0 and below 1"),
        ({"levels": ["6"]}, "data.levels=6: arithmetic has levels 1, 2, 3, 4, 5"),
        ({"levels": ["1"], "problems": 1000}, "training problems; lower it or add levels"),
        ({"files": "a.jsonl"}, "arithmetic makes its own problems"),
        ({"files": 3, "name": "mine"}, "data.files=3: must be a path or a list of paths"),
        ({"name": "mine"}, "needs a hub name or local files"),
        ({"name": "mine", "hub": "gsm8k"}, "data.hub=gsm8k: must have the form owner/name"),
        (
            {"levels": ["2"], "problems": 50, "max_prompt_tokens": 8},
            "all 50 train prompts of 'arithmetic' are longer; raise it",
        ),
    ],
)
def test_settings(changes: dict[str, Any], message: str) -> None:
    assert message in refused(DataConfig(**changes))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.jsonl", None, "no such file"),
        ("rows.csv", "problem,answer\n", "must end in .jsonl, .json or .parquet"),
        ("rows.jsonl", "", "has no train problems; check the source"),
        ("rows.jsonl", '{"problem": "a", "answer": "1"}\n{"problem":\n', "line 2: is not JSON"),
        ("rows.jsonl", "[1]\n", "line 1: holds a list and must hold an object"),
        ("rows.json", '{"problem": "a"}', "must hold a list of objects"),
        ("rows.json", '{"problem": "a"}\n{}', "one object a line is .jsonl"),
        ("rows.parquet", "text", "is not a Parquet file"),
    ],
)
def test_files(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    assert message in refused(local(str(path)))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"gold": "anwser"}, "data.columns.gold=anwser: no 'anwser' in {path}, line 1; did you mean 'answer'?"),
        (
            {"prompt": "text"},
            "data.columns.prompt=text: no 'text' in {path}, line 1; it has problem, answer, chat, list",
        ),
        ({"gold": "answer.target"}, "data.columns.gold=answer.target: no 'target' in {path}, line 1; it holds str '2'"),
        ({"gold": "list.2"}, "it holds a list of 2, pick an element by its number from 0"),
        ({"gold": "list"}, "holds list ['2', '3'] there and must hold text or a number"),
        ({"prompt": "chat"}, "for a chat name the turn's text, chat.0.content"),
    ],
)
def test_columns(jsonl: Jsonl, columns: dict[str, str], message: str) -> None:
    path = jsonl({**ROW, "chat": [{"role": "user", "content": "x"}], "list": ["2", "3"]})
    assert message.replace("{path}", path) in refused(local(path, columns=ColumnsConfig(**columns)))


def test_no_gold_anywhere(jsonl: Jsonl) -> None:
    message = refused(local(jsonl(ROW), gold_pattern="####"))
    assert (
        "none of the 1 train rows of 'mine' has a problem with one gold answer after data.gold_pattern='####'"
        in message
    )


def test_levels(jsonl: Jsonl) -> None:
    path = jsonl({**ROW, "level": "Level 1"})
    assert "needs data.columns.level" in refused(local(path, levels=["Level 1"]))
    columns = ColumnsConfig(level="level")
    assert "data.levels=Level 7: no row has it; levels here: Level 1" in refused(
        local(path, levels=["Level 7"], columns=columns)
    )


def test_splits_that_have_no_source(jsonl: Jsonl) -> None:
    assert "no heldout problems; give data.heldout_files" in refused(local(jsonl(ROW)), split="heldout")
    benchmark = DataConfig(name="mine", heldout_files=jsonl(ROW), split=None)
    assert len(load_prompts(benchmark, load_tokenizer("embedded"), split="heldout", limit=None)) == 1
    with pytest.raises(InputError, match="has no training problems"):
        load_prompts(benchmark, None, split="train", limit=None)


def test_models(jsonl: Jsonl, tokenizer: Any, tmp_path: Path) -> None:
    assert "model.path=./nowhere: no such directory" in refused(local(jsonl(ROW)), model="./nowhere")
    without = type(tokenizer)(tokenizer_object=tokenizer.backend_tokenizer)
    without.save_pretrained(tmp_path / "base")
    (tmp_path / "base" / "config.json").write_text('{"model_type": "qwen3"}')
    message = refused(local(jsonl(ROW)), model=str(tmp_path / "base"))
    assert "has no chat template; use data.template=plain" in message
