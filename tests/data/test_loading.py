"""Rows to prompts: columns, golds, templates, filters, splits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maspo_rl.config.data import DataConfig
from maspo_rl.config.load import load
from maspo_rl.data import check_data, load_prompts

Jsonl = Callable[..., str]


def local(files: Any, **changes: Any) -> DataConfig:
    return DataConfig(**{"name": "mine", "files": files, "heldout_share": 0.0, **changes})


def golds(config: DataConfig, tokenizer: Any, split: Any = "train") -> list[str]:
    return [prompt.gold for prompt in load_prompts(config, tokenizer, split=split, limit=None)]


def test_chat_prompts_are_the_tokenizers_own_rendering(tokenizer: Any, jsonl: Jsonl) -> None:
    path = jsonl({"problem": "1 + 1 = ?", "answer": 2})
    config = local(path, system="be brief", instruction="box it")
    (prompt,) = load_prompts(config, tokenizer, split="train", limit=None)
    chat = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "1 + 1 = ?\nbox it"}]
    expected = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)["input_ids"]
    assert list(prompt.token_ids) == expected
    assert (
        tokenizer.decode(prompt.token_ids) == "<|system|>be brief<|end|><|user|>1 + 1 = ?\nbox it<|end|><|assistant|>"
    )
    assert (prompt.text, prompt.gold, prompt.dataset) == ("1 + 1 = ?", "2", "mine")


def test_plain_prompts_are_the_template(tokenizer: Any, jsonl: Jsonl) -> None:
    config = local(jsonl({"problem": "1 + 1", "answer": "2"}), template="plain", plain_template="Q: {problem}\nA:")
    (prompt,) = load_prompts(config, tokenizer, split="train", limit=None)
    assert tokenizer.decode(prompt.token_ids) == "Q: 1 + 1\nA:"


@pytest.mark.parametrize(
    ("value", "gold"),
    [(27.0, "27"), (0.5, "0.5"), (-3, "-3"), (" 025 ", "025"), ("1,000", "1,000"), (10**20, "1" + "0" * 20)],
)
def test_golds_are_strings(tokenizer: Any, jsonl: Jsonl, value: Any, gold: str) -> None:
    assert golds(local(jsonl({"problem": "x", "answer": value})), tokenizer) == [gold]


def test_gold_patterns(tokenizer: Any, jsonl: Jsonl) -> None:
    hashes = jsonl({"problem": "a", "answer": "2 * 3 = 6 #### 5\nno: #### 6"}, {"problem": "b", "answer": "none"})
    assert golds(local(hashes, gold_pattern="#### "), tokenizer) == ["6"]
    boxes = jsonl(
        {"problem": "a", "answer": r"\boxed{1}, so \boxed{\frac{1}{2}}."}, {"problem": "b", "answer": r"\boxed{1"}
    )
    assert golds(local(boxes, gold_pattern=r"\boxed{"), tokenizer) == [r"\frac{1}{2}"]


def test_what_is_left_out_is_counted(tokenizer: Any, jsonl: Jsonl) -> None:
    rows = [
        ("a", "1"),
        ("a", "1"),
        ("b", "1"),
        ("b", "2"),
        ("c", None),
        ("d", ""),
        ("", "1"),
        ("e" * 50, "1"),
        ("f", "3"),
    ]
    path = jsonl(*({"problem": problem, "answer": answer} for problem, answer in rows))
    prompts = load_prompts(local(path, max_prompt_tokens=20), tokenizer, split="train", limit=None)
    assert [prompt.text for prompt in prompts] == ["a", "f"]
    assert prompts.counts == {"read": 9, "empty": 3, "duplicate": 1, "conflicting_gold": 2, "too_long": 1}


def test_parquet_with_nested_columns(tokenizer: Any, tmp_path: Path) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415

    row = {
        "prompt": [
            {
                "role": "user",
                "content": "How many? Let's think step by step and output the final answer within \\boxed{}.",
            }
        ],
        "reward_model": {"ground_truth": {"target": "4", "solution": "2 + 2 = \\boxed{4}"}},
        "level": "Level 3",
    }
    pq.write_table(pa.Table.from_pylist([row, {**row, "level": "Level 5"}]), tmp_path / "rows.parquet")
    config = load(
        ["data=math_verl", f"data.files={tmp_path}/rows.parquet", "data.levels=[Level 3]", "data.heldout_share=0"]
    )
    (prompt,) = load_prompts(config.data, tokenizer, split="train", limit=None)
    assert (prompt.text, prompt.gold) == ("How many?", "4")


def test_splits_of_one_source_do_not_meet(tokenizer: Any, jsonl: Jsonl) -> None:
    path = jsonl(*({"problem": f"problem {number}", "answer": number} for number in range(400)))
    config = local(path, heldout_share=0.25)
    train, heldout = golds(config, tokenizer), golds(config, tokenizer, "heldout")
    assert sorted(train + heldout) == sorted(str(number) for number in range(400))
    assert 70 <= len(heldout) <= 130


def test_heldout_files_leave_training_whole(tokenizer: Any, jsonl: Jsonl) -> None:
    train = jsonl(*({"problem": f"problem {number}", "answer": number} for number in range(50)))
    heldout = jsonl({"problem": "another", "answer": 7}, name="heldout.jsonl")
    config = local([train], heldout_files=[heldout], heldout_share=0.5)
    assert len(golds(config, tokenizer)) == 50
    assert golds(config, tokenizer, "heldout") == ["7"]


def test_ids_are_the_same_everywhere(tokenizer: Any, jsonl: Jsonl) -> None:
    (prompt,) = load_prompts(local(jsonl({"problem": "1 + 1 = ?", "answer": 2})), tokenizer, split="train", limit=None)
    # printf 'mine\0001 + 1 = ?\0002' | sha256sum
    assert prompt.id == "476426f1a0012b1b"


def test_the_arithmetic_set_is_thousands_of_short_prompts(tokenizer: Any) -> None:
    config = load(["data=arithmetic"]).data
    train = load_prompts(config, tokenizer, split="train", limit=None)
    heldout = load_prompts(config, tokenizer, split="heldout", limit=200)
    assert (len(train), len(heldout)) == (10_000, 200)
    assert not {prompt.id for prompt in train} & {prompt.id for prompt in heldout}
    assert max(len(prompt.token_ids) for prompt in train) == 9


def test_loading_data_starts_nothing_heavy() -> None:
    code = (
        "import sys; from maspo_rl.config.data import DataConfig; "
        "from maspo_rl.data import load_prompts, load_tokenizer; "
        "load_prompts(DataConfig(problems=10), load_tokenizer('embedded'), split='train', limit=None); "
        "print([name for name in ('vllm', 'deepspeed', 'ray') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["gsm8k", "math", "dapo_math_17k"])
def test_hub_sets_pass_by_their_form(name: str) -> None:
    check_data(load([f"data={name}"]).data)
