"""From a data set's configuration to prompts, and every check of it that needs no Ray."""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maspo_rl.config.data import DataConfig
from maspo_rl.config.errors import InputError
from maspo_rl.data import arithmetic
from maspo_rl.data.arithmetic import Split
from maspo_rl.data.columns import gold_answer, problem_text
from maspo_rl.data.policy import is_hub_name
from maspo_rl.data.sources import Row, at_levels, existing_files, file_rows, hub_rows
from maspo_rl.data.template import check_template, render
from maspo_rl.types import Prompt

ARITHMETIC = "arithmetic"
ARITHMETIC_TRAIN = 10_000
ARITHMETIC_HELDOUT = 1_000
_MOST_NAMED = 5

GoldCheck = Callable[[Sequence[str]], list[str | None]]
"""For each gold why no answer can be judged against it, or None."""


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Prompts with distinct ids, in the order of their source.

    `counts` says what became of the rows: `read`, and what was left out as `duplicate` (same problem and gold),
    `conflicting_gold` (same problem, several golds), `empty` (no problem or no gold), `unparseable_gold` (where golds
    were checked) and `too_long`. `unparseable` names the first of those golds with their rows.
    """

    prompts: tuple[Prompt, ...]
    counts: Mapping[str, int]
    unparseable: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.prompts)

    def __getitem__(self, index: int) -> Prompt:
        return self.prompts[index]

    def __iter__(self) -> Iterator[Prompt]:
        return iter(self.prompts)


def load_prompts(
    config: DataConfig, tokenizer: Any, *, split: Split, limit: int | None, check_golds: GoldCheck | None = None
) -> PromptSet:
    """The prompts of one split, at most `limit` of them; of training also at most `config.problems`.

    Golds that `check_golds` refuses are left out, with a warning of one line. Raises InputError for whatever the
    configuration gets wrong and for a split that ends up empty.
    """
    check_data(config)
    limits = [limit, config.problems if split == "train" else None]
    limit = min((value for value in limits if value is not None), default=None)
    unparseable: list[str] = []
    if config.name == ARITHMETIC:
        pairs, counts = _arithmetic(config, split, limit)
    else:
        found, counts = _golds(source_rows(config, split), config, split)
        if check_golds is not None:
            troubles = check_golds([gold for _, gold, _ in found])
            judged = list(zip(found, troubles, strict=True))
            unparseable = [f"{place}: {gold[:60]!r} {trouble}" for (_, gold, place), trouble in judged if trouble]
            counts["unparseable_gold"] = len(unparseable)
            found = [row for row, trouble in judged if not trouble]
        pairs = [(problem, gold) for problem, gold, _ in found]
    prompts: list[Prompt] = []
    for (problem, gold), token_ids in zip(pairs, render([text for text, _ in pairs], config, tokenizer), strict=True):
        if len(token_ids) > config.max_prompt_tokens:
            counts["too_long"] += 1
        else:
            prompts.append(Prompt(prompt_id(config.name, problem, gold), token_ids, problem, gold, config.name))
    if not prompts:
        raise InputError(_why_empty(config, split, counts, unparseable))
    if unparseable:
        more = f"; and {len(unparseable) - _MOST_NAMED} more" if len(unparseable) > _MOST_NAMED else ""
        logging.getLogger(__name__).warning(
            "%s: %d gold(s) left out, as no answer can be judged against them: %s%s",
            *(config.name, len(unparseable), "; ".join(unparseable[:_MOST_NAMED]), more),
        )
    return PromptSet(tuple(prompts[:limit]), counts, tuple(unparseable[:_MOST_NAMED]))


def prompt_id(dataset: str, problem: str, gold: str) -> str:
    """The first 16 hexadecimal digits of SHA-256 over the three; the same on every machine."""
    return hashlib.sha256("\x00".join((dataset, problem, gold)).encode()).hexdigest()[:16]


def check_data(config: DataConfig) -> None:
    """Raises InputError for everything that is wrong whatever the rows say; needs neither a tokenizer nor a network."""
    check_template(config)
    if config.max_prompt_tokens < 1:
        raise InputError(f"data.max_prompt_tokens={config.max_prompt_tokens}: must be at least 1")
    if config.problems is not None and config.problems < 1:
        raise InputError(f"data.problems={config.problems}: must be at least 1, or null for all")
    if not 0 <= config.heldout_share < 1:
        raise InputError(f"data.heldout_share={config.heldout_share}: must be at least 0 and below 1")
    _check_files(config)
    if config.name == ARITHMETIC:
        if config.files or config.heldout_files:
            raise InputError("data.files: arithmetic makes its own problems; use data=local for files of your own")
        known = [str(level) for level in arithmetic.LEVELS]
        for level in config.levels:
            if level not in known:
                raise InputError(f"data.levels={level}: arithmetic has levels {', '.join(known)}")
        return
    for key, files in (("data.files", config.files), ("data.heldout_files", config.heldout_files)):
        existing_files(files or [], key)
    if config.hub is None and not config.files and not config.heldout_files:
        raise InputError(f"data.hub=null: the data set '{config.name}' needs a hub name or local files in data.files=")
    if config.hub is not None and not is_hub_name(config.hub):
        raise InputError(f"data.hub={config.hub}: must have the form owner/name; local files go into data.files=")


def _check_files(config: DataConfig) -> None:
    for key, value in (("data.files", config.files), ("data.heldout_files", config.heldout_files)):
        listed = [value] if isinstance(value, str) else value or []
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            raise InputError(f"{key}={value}: must be a path or a list of paths, {key}=[a.jsonl,b.jsonl]")


def _arithmetic(config: DataConfig, split: Split, limit: int | None) -> tuple[list[tuple[str, str]], dict[str, int]]:
    levels = [int(level) for level in config.levels] or list(arithmetic.LEVELS)
    size = limit or (ARITHMETIC_TRAIN if split == "train" else ARITHMETIC_HELDOUT)
    problems = arithmetic.distinct(levels, split, seed=0, size=size)
    if split == "train" and len(problems) < min(config.problems or 0, size):
        raise InputError(
            f"data.problems={config.problems}: arithmetic of levels {levels} has about {len(problems)} training "
            "problems; lower it or add levels"
        )
    return [(problem.text, problem.gold) for problem in problems], {"read": len(problems), "too_long": 0}


def source_rows(config: DataConfig, split: Split) -> Iterator[Row]:
    """The rows of the source that holds a split."""
    if split == "heldout" and config.heldout_files:
        return at_levels(file_rows(config.heldout_files, "data.heldout_files"), config)
    if config.files:
        return at_levels(file_rows(config.files, "data.files"), config)
    name = config.heldout_split if split == "heldout" and config.heldout_split else config.split
    if config.hub is None or name is None:
        raise InputError(f"data.split=null: '{config.name}' has no training problems; name a split or data.files")
    return at_levels(hub_rows(config, name), config)


def _golds(rows: Iterator[Row], config: DataConfig, split: Split) -> tuple[list[tuple[str, str, str]], dict[str, int]]:
    """Problems with their one gold and the first row that has it, and the counts."""
    shared = not config.heldout_files and (bool(config.files) or not config.heldout_split)
    counts = dict.fromkeys(("read", "empty", "duplicate", "conflicting_gold", "too_long"), 0)
    golds: defaultdict[str, list[str]] = defaultdict(list)
    places: dict[str, str] = {}
    for place, row in rows:
        problem = problem_text(row, config, place)
        if shared and arithmetic.hashed_split(problem, config.heldout_share) != split:
            continue
        counts["read"] += 1
        gold = gold_answer(row, config, place)
        if problem and gold:
            golds[problem].append(gold)
            places.setdefault(problem, place)
        else:
            counts["empty"] += 1
    for found in golds.values():
        counts["duplicate" if len(set(found)) == 1 else "conflicting_gold"] += len(found) - 1
    counts["conflicting_gold"] += sum(len(set(found)) > 1 for found in golds.values())
    alone = [(problem, found[0]) for problem, found in golds.items() if len(set(found)) == 1]
    return [(problem, gold, places[problem]) for problem, gold in alone], counts


def _why_empty(config: DataConfig, split: Split, counts: Mapping[str, int], unparseable: Sequence[str]) -> str:
    """The line for a split without a prompt."""
    if not counts["read"]:
        remedy = "check the source" if split == "train" else "give data.heldout_files or raise data.heldout_share"
        return f"data: '{config.name}' has no {split} problems; {remedy}"
    if counts["too_long"]:
        return (
            f"data.max_prompt_tokens={config.max_prompt_tokens}: all {counts['too_long']} {split} prompts of "
            f"'{config.name}' are longer; raise it"
        )
    if unparseable:
        return (
            f"data.columns.gold={config.columns.gold}: no answer can be judged against any of the {len(unparseable)} "
            f"{split} golds of '{config.name}', such as {unparseable[0]}; name the column that holds the bare answer"
        )
    pattern = f" after data.gold_pattern={config.gold_pattern!r}" if config.gold_pattern else ""
    return (
        f"data.columns.gold={config.columns.gold}: none of the {counts['read']} {split} rows of '{config.name}' has a "
        f"problem with one gold answer{pattern}; name the column that holds it"
    )
