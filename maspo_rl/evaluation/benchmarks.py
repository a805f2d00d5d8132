"""Benchmarks: the held-out problems of a file in `configs/data/`, complete as published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from maspo_rl.config.data import DataConfig
from maspo_rl.config.errors import InputError
from maspo_rl.config.keys import choices, nearest
from maspo_rl.config.load import load
from maspo_rl.data import GoldCheck, PromptSet, load_prompts


def benchmark_config(name: str, settings: Sequence[str] = ()) -> DataConfig:
    """`configs/data/<name>.yaml` with `settings` such as "files=test.jsonl" over it; its files are all held out.

    Raises InputError for a name or a setting that is not known.
    """
    if name not in choices("data"):
        raise InputError(f"benchmark '{name}': no such file in configs/data; {nearest(name, choices('data'))}")
    config = load([f"data={name}", *(f"data.{setting}" for setting in settings)]).data
    if config.files:
        config.files, config.heldout_files = None, config.files
    return config


def load_benchmark(
    config: DataConfig, tokenizer: Any, limit: int | None, check_golds: GoldCheck | None = None
) -> PromptSet:
    """Its problems, the first `limit` of them; the rest is said of the whole. Raises as `check_complete` does."""
    prompts = load_prompts(config, tokenizer, split="heldout", limit=None, check_golds=check_golds)
    check_complete(prompts, config)
    return replace(prompts, prompts=prompts.prompts[:limit])


def check_complete(prompts: PromptSet, config: DataConfig) -> None:
    """Raises InputError where a benchmark's source does not have the published number of rows, or holds a problem that
    is too long.

    The rows of a local file are held against `rows` as those of the hub are: part of a benchmark is chosen by a limit.
    """
    read, rows = prompts.counts["read"], config.rows
    if rows and read not in rows:
        published = " or ".join(f"{number:,}" for number in rows)
        raise InputError(
            f"benchmark {config.name}: {read:,} rows where the published set has {published}; give the whole set and "
            "choose part of it with eval.problems=, or use data=local for problems of your own"
        )
    if prompts.counts["too_long"]:
        raise InputError(
            f"benchmark {config.name}: {prompts.counts['too_long']} problems are longer than "
            f"max_prompt_tokens={config.max_prompt_tokens}; raise it: none may be left out"
        )
