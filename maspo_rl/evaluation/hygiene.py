"""Training problems that stand in a benchmark, that repeat each other, or that contradict each other."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maspo_rl.config.data import DataConfig
from maspo_rl.data import PromptSet
from maspo_rl.types import Prompt

GRAM_WORDS = 13
_OPERATORS = frozenset("+-*/=<>^!")
_PROSE_WORDS = 4
_EXAMPLES = 5


def text_key(problem: str) -> str:
    """What is left of a problem when only letters and digits count; two problems of one key are the same problem.

    A problem of fewer than four words is a formula and keeps its operators: `12 + 34` is not `12 - 34`.
    """
    text = unicodedata.normalize("NFKC", problem).casefold()
    prose = len(re.findall(r"[^\W\d_]{3,}", text)) >= _PROSE_WORDS
    return "".join(sign for sign in text if sign.isalnum() or (not prose and sign in _OPERATORS))


def grams(problem: str) -> set[tuple[str, ...]]:
    """Its runs of 13 words (Brown et al. 2020, arXiv 2005.14165, appendix C)."""
    words = re.findall(r"\w+", problem.casefold())
    return {tuple(words[start : start + GRAM_WORDS]) for start in range(len(words) - GRAM_WORDS + 1)}


def decontaminate(training: PromptSet, benchmarks: Iterable[Iterable[Prompt]]) -> PromptSet:
    """The training prompts whose problem, by its key, is in none of the benchmarks; counted as `in_benchmark`."""
    keys = {text_key(prompt.text) for prompts in benchmarks for prompt in prompts}
    kept = tuple(prompt for prompt in training if text_key(prompt.text) not in keys)
    return replace(training, prompts=kept, counts={**training.counts, "in_benchmark": len(training) - len(kept)})


def untokenised(config: DataConfig) -> tuple[DataConfig, Any]:
    """Configuration and tokenizer to load problems with whatever their length in tokens."""
    plain = replace(config, template="plain", system=None, plain_template="{problem}")
    return plain, lambda texts: {"input_ids": [()] * len(texts)}


def inspect(training: PromptSet, benchmarks: Mapping[str, PromptSet]) -> dict[str, Any]:
    """The report as JSON holds it: rows left out in loading, repeats, contradictions, overlap with each benchmark.

    Overlap is counted three ways: the same text, the same key (both removed from training), and a shared run of 13
    words, which stock phrases have too and which is told, not removed.
    """
    by_key: defaultdict[str, list[Prompt]] = defaultdict(list)
    for prompt in training:
        by_key[text_key(prompt.text)].append(prompt)
    repeats = [prompts for prompts in by_key.values() if len(prompts) > 1]
    contradictions = [prompts for prompts in repeats if len({prompt.gold for prompt in prompts}) > 1]
    runs = {name: set().union(*(grams(prompt.text) for prompt in prompts)) for name, prompts in benchmarks.items()}
    sharing: dict[str, list[str]] = {name: [] for name in benchmarks}
    for prompt in training:
        own = grams(prompt.text)
        for name, of_benchmark in runs.items():
            if not own.isdisjoint(of_benchmark):
                sharing[name].append(prompt.text)
    return {
        "rows": dict(training.counts),
        "unparseable": list(training.unparseable),
        "prompts": len(training),
        "repeats": {
            "prompts": sum(len(prompts) - 1 for prompts in repeats),
            "with_other_golds": len(contradictions),
            "examples": [[(p.text, p.gold) for p in prompts] for prompts in (contradictions or repeats)[:_EXAMPLES]],
        },
        "benchmarks": {name: _overlap(by_key, prompts, sharing[name]) for name, prompts in benchmarks.items()},
    }


def _overlap(by_key: Mapping[str, Sequence[Prompt]], benchmark: PromptSet, sharing: list[str]) -> dict[str, Any]:
    texts = {text_key(prompt.text): prompt.text for prompt in benchmark}
    found = [(prompt.text, texts[key]) for key, prompts in by_key.items() if key in texts for prompt in prompts]
    return {
        "problems": len(benchmark),
        "problems_in_training": len(by_key.keys() & texts.keys()),
        "same_text": sum(text == other for text, other in found),
        "same_key": len(found),
        f"shared_{GRAM_WORDS}_grams": len(sharing),
        "examples": found[:_EXAMPLES],
        f"examples_{GRAM_WORDS}_grams": sharing[:_EXAMPLES],
    }


def markdown(report: Mapping[str, Any], name: str) -> str:
    """The report for people."""
    rows = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in report["rows"].items())
    repeats = report["repeats"]
    lines = [
        f"# Data hygiene: {name}",
        "",
        f"Rows: {rows}. Left: {report['prompts']:,} prompts.",
        f"By letters and digits {repeats['prompts']:,} of them repeat another; {repeats['with_other_golds']:,} "
        "problems among these have several golds.",
        "",
        f"| benchmark | its problems | in training | training prompts: same text | same letters and digits | "
        f"{GRAM_WORDS} words in common |",
        "|---|---|---|---|---|---|",
    ]
    for benchmark, part in report["benchmarks"].items():
        cells = [value for value in part.values() if isinstance(value, int)]
        lines.append(f"| {benchmark} | " + " | ".join(f"{value:,}" for value in cells) + " |")
    lines += ["", "Same letters and digits: removed before training (`data.decontaminate`). Common words: told only."]
    for benchmark, part in report["benchmarks"].items():
        lines += [f"- {benchmark}: {text[:200]!r}" for text, _ in part["examples"]]
    lines += [f"- golds {[gold for _, gold in same]}: {same[0][0][:200]!r}" for same in repeats["examples"]]
    lines += [f"- no answer can be judged against {problem}" for problem in report["unparseable"]]
    return "\n".join(lines) + "\n"
