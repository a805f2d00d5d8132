"""Benchmarks load as published, whatever their golds look like."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from maspo_rl.config.errors import InputError
from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.data import load_prompts
from maspo_rl.evaluation.benchmarks import benchmark_config, load_benchmark
from maspo_rl.verifier import Question, Verifier

DATA = Path(__file__).parents[3] / "shared" / "data"
BENCHMARKS = [
    ("aime24", "aime24/test.jsonl", 30),
    ("aime25", "aime25/test.jsonl", 30),
    ("amc23", "amc23/test.jsonl", 40),
    ("math500", "math500/test.jsonl", 500),
    ("minerva_qwen", "minerva_math/test.jsonl", 272),
    ("olympiadbench", "olympiadbench/test.jsonl", 675),
    ("gsm8k", "gsm8k/test.jsonl", 1319),
    ("math_verl", "math/test.parquet", 5000),
]
TRAINING = [
    (["data=gsm8k"], "gsm8k/train.jsonl", 7473),
    (["data=math_verl"], "math/train.parquet", 7500),
    (["data=verl"], "dapo_math_17k/train.parquet", 17917),
    (["data=verl"], "math_dsr_sub/dsr_sub.parquet", 1209),
    (["data=local"], "aime_1983_2023/train.json", 975),
    (["data=local", "data.columns.prompt=prompt"], "amc83/test.json", 83),
]


def there(cases: list[Any]) -> list[Any]:
    """The cases whose file is on this machine."""
    return [case for case in cases if (DATA / case[1]).is_file()]


class Words:
    """A tokenizer of one token a word."""

    chat_template = "{problem}"
    name_or_path = "words"

    def apply_chat_template(self, chats: Sequence[Any], **_: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [[1] * len(chat[-1]["content"].split()) for chat in chats]}


@pytest.fixture(scope="module")
def verifier() -> Any:
    with Verifier(VerifierConfig(workers=1, deadline_s=20.0)) as verifier:
        yield verifier


@pytest.mark.parametrize(("name", "file", "rows"), there(BENCHMARKS))
def test_every_gold_of_the_published_rows_passes_against_itself(
    name: str, file: str, rows: int, verifier: Verifier
) -> None:
    prompts = load_benchmark(benchmark_config(name, [f"files={DATA / file}"]), Words(), None)
    assert (prompts.counts["read"], len(prompts)) == (rows, rows)
    questions = [Question(f"\\boxed{{{prompt.gold}}}", prompt.gold, prompt.dataset) for prompt in prompts]
    verdicts = verifier.judge_many(questions)
    failed = [prompt.gold for prompt, verdict in zip(prompts, verdicts, strict=True) if verdict.label != "correct"]
    assert failed == []


@pytest.mark.parametrize(("data", "file", "rows"), there(TRAINING))
def test_training_files_have_their_published_rows(data: list[str], file: str, rows: int) -> None:
    from maspo_rl.config.load import load  # noqa: PLC0415

    config = load([*data, f"data.files={DATA / file}", "data.heldout_share=0"]).data
    assert load_prompts(config, Words(), split="train", limit=None).counts["read"] == rows


def rows(path: Path, count: int, **changes: Any) -> str:
    path.write_text("".join(json.dumps({"problem": f"p {i}", "answer": "0", **changes}) + "\n" for i in range(count)))
    return f"files={path}"


@pytest.mark.parametrize(
    ("count", "changes", "message"),
    [
        (29, {}, "benchmark aime24: 29 rows where the published set has 30; give the whole set"),
        (0, {}, "'aime24' has no heldout problems"),
        (30, {"answer": ["1"]}, "holds list ['1'] there and must hold text or a number"),
        (30, {"problem": "long " * 3000}, "longer"),
    ],
)
def test_what_is_not_the_benchmark_is_refused(
    tmp_path: Path, count: int, changes: dict[str, Any], message: str
) -> None:
    setting = rows(tmp_path / "rows.jsonl", count, **changes)
    with pytest.raises(InputError) as caught:
        load_benchmark(benchmark_config("aime24", [setting]), Words(), None)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_and_columns(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="benchmark 'aime26': no such file in configs/data; did you mean aime2"):
        benchmark_config("aime26")
    config = benchmark_config("aime24", [rows(tmp_path / "a.jsonl", 30), "columns.gold=solution"])
    with pytest.raises(InputError, match=r"no 'solution' in .*; it has problem, answer"):
        load_benchmark(config, Words(), None)
    with pytest.raises(InputError, match=r"unknown key 'data.fils': did you mean data.files"):
        benchmark_config("aime24", ["fils=a"])


def test_a_list_of_answers_is_one_gold(tmp_path: Path) -> None:
    setting = rows(tmp_path / "a.jsonl", 1, question="q", final_answer=["$1$", "$2$"])
    (prompt,) = load_benchmark(benchmark_config("olympiadbench", [setting, "rows=[1]"]), Words(), None)
    assert prompt.gold == "$1$, $2$"


def test_a_wrong_revision_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets  # noqa: PLC0415

    def missing(*_: Any, revision: str, **__: Any) -> None:
        raise datasets.exceptions.DatasetNotFoundError(f"Revision '{revision}' doesn't exist for dataset")

    monkeypatch.setattr(datasets, "load_dataset", missing)
    with pytest.raises(
        InputError, match=r"Revision 'nowhere' doesn't exist .*; check name, subset, revision and split"
    ):
        load_benchmark(benchmark_config("aime25", ["revision=nowhere"]), Words(), None)
