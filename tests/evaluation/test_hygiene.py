"""Overlap of training data with benchmarks, counted as it was counted elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maspo_rl.config.data import DataConfig
from maspo_rl.config.load import load
from maspo_rl.data import PromptSet, load_prompts
from maspo_rl.evaluation.benchmarks import benchmark_config, load_benchmark
from maspo_rl.evaluation.hygiene import decontaminate, inspect, markdown, text_key, untokenised
from maspo_rl.types import Prompt

DATA = Path(__file__).parents[3] / "shared" / "data"
# Distinct benchmark problems whose letters and digits are those of a training problem, counted by other hands.
OVERLAP = [
    ("dapo_math_17k/train.parquet", ["data=verl"], {"math500": 7, "amc23": 8, "olympiadbench": 10, "aime24": 0}),
    ("math/train.parquet", ["data=math_verl"], {"math500": 1, "olympiadbench": 2, "aime25": 0}),
    ("aime_1983_2023/train.json", ["data=local"], {"math500": 6, "aime24": 0, "aime25": 0}),
    ("gsm8k/train.jsonl", ["data=gsm8k"], {"gsm8k": 0, "math500": 0}),
]


def problems(*pairs: tuple[str, str]) -> PromptSet:
    prompts = tuple(Prompt(str(index), (), text, gold, "d") for index, (text, gold) in enumerate(pairs))
    return PromptSet(prompts, {"read": len(prompts)})


@pytest.mark.parametrize(("file", "data", "expected"), [case for case in OVERLAP if (DATA / case[0]).is_file()])
def test_known_overlap(file: str, data: list[str], expected: dict[str, int]) -> None:
    config = load([*data, f"data.files={DATA / file}", "data.heldout_share=0"]).data
    plain, tokenizer = untokenised(config)
    training = load_prompts(plain, tokenizer, split="train", limit=None)
    benchmarks = {
        name: load_benchmark(*untokenised(benchmark_config(name, [f"files={DATA / name}/test.jsonl"])), limit=None)
        for name in expected
    }
    report = inspect(training, benchmarks)
    assert {name: part["problems_in_training"] for name, part in report["benchmarks"].items()} == expected
    left = decontaminate(training, benchmarks.values())
    assert left.counts["in_benchmark"] == len(training) - len(left) >= sum(expected.values())
    assert len(decontaminate(left, benchmarks.values())) == len(left)


def test_spelling_does_not_hide_a_problem_and_an_operator_makes_another() -> None:
    text = "Find the $x$ with   $x^2 = 4$ that is positive."
    assert text_key(text) == text_key("find the \\(x\\) with $x^2=4$, that is positive")
    assert text_key("12 + 34 = ?") != text_key("12 - 34 = ?") != text_key("1 + 234 = ?")
    assert text_key("Compute 12 + 34") == text_key("compute 12+34")


def test_report() -> None:
    phrase = " ".join(f"word{number}" for number in range(13))
    training = problems(
        ("How many ways are there?", "1"),
        ("How many ways are there", "2"),
        (f"{phrase} one", "3"),
        ("something else", "4"),
    )
    benchmark = problems(("How many ways are there?", "1"), (f"{phrase} two", "5"))
    report = inspect(training, {"b": benchmark})
    assert (report["repeats"]["prompts"], report["repeats"]["with_other_golds"]) == (1, 1)
    part: dict[str, Any] = report["benchmarks"]["b"]
    assert (part["same_text"], part["same_key"], part["shared_13_grams"], part["problems_in_training"]) == (1, 2, 1, 1)
    assert "| b | 2 | 1 | 1 | 2 | 1 |" in markdown(report, "made up")
    assert [prompt.gold for prompt in decontaminate(training, [benchmark])] == ["3", "4"]


def test_untokenised_problems_have_no_length() -> None:
    config, tokenizer = untokenised(DataConfig(problems=5, levels=["2"], max_prompt_tokens=1))
    assert len(load_prompts(config, tokenizer, split="train", limit=None)) == 5
