"""Golds that no answer can be judged against are left out, counted and named before training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from maspo_rl.config.errors import InputError
from maspo_rl.config.load import load
from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.data import load_prompts
from maspo_rl.evaluation.benchmarks import benchmark_config, load_benchmark
from maspo_rl.verifier import Verifier

Jsonl = Callable[..., str]


def rows(*golds: str) -> list[dict[str, str]]:
    return [{"problem": f"problem {number}", "answer": gold} for number, gold in enumerate(golds)]


def test_bad_golds_are_left_out_and_named_with_their_rows(tokenizer: Any, jsonl: Jsonl) -> None:
    """The third is read by math-verify alone, so it takes a worker to tell; the last two are no answers."""
    path = jsonl(*rows("5", "\\frac{1}{2}", "\\sum_{k=1}^{n} k", "\\frac{1", "nan"))
    config = load(["data=local", f"data.files={path}", "data.heldout_share=0"]).data
    with Verifier(VerifierConfig(workers=1)) as verifier:
        prompts = load_prompts(config, tokenizer, split="train", limit=None, check_golds=verifier.check_golds)
        assert [prompt.text for prompt in prompts] == ["problem 0", "problem 1", "problem 2"]
        assert prompts.counts["unparseable_gold"] == 2
        assert [entry.split(": ")[0].split("line ")[1] for entry in prompts.unparseable] == ["4", "5"]
        assert "'nan'" in prompts.unparseable[1]


def test_a_benchmark_names_them_in_one_line(tokenizer: Any, jsonl: Jsonl, caplog: pytest.LogCaptureFixture) -> None:
    config = benchmark_config("local", [f"files={jsonl(*rows('5', *['nan'] * 7))}"])
    with Verifier(VerifierConfig()) as verifier:
        prompts = load_benchmark(config, tokenizer, 1, verifier.check_golds)
    assert (len(prompts), prompts.counts["read"], prompts.counts["unparseable_gold"]) == (1, 8, 7)
    (line,) = caplog.messages
    assert line.startswith("local: 7 gold(s) left out")
    assert line.count("'nan' is no answer") == 5
    assert line.endswith("; and 2 more")


def test_plain_golds_start_no_worker() -> None:
    with Verifier(VerifierConfig()) as verifier:
        assert verifier.check_golds(["5", "1/2", "x^2+1", "\\text{Evelyn}", "(C)"]) == [None] * 5
        assert not verifier.process_ids()
        assert verifier.pending == 0


def test_data_without_a_good_gold_is_refused(tokenizer: Any, jsonl: Jsonl) -> None:
    path = jsonl(*rows("?", "nan"))
    config = load(["data=local", f"data.files={path}", "data.heldout_share=0"]).data
    with Verifier(VerifierConfig()) as verifier, pytest.raises(InputError, match=r"any of the 2 train golds.*'\?'"):
        load_prompts(config, tokenizer, split="train", limit=None, check_golds=verifier.check_golds)
