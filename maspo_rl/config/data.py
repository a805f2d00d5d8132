"""Settings of the data room: where problems come from and how they become prompts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class ColumnsConfig:
    """The columns that hold a problem and its answer.

    A dotted path leads into nested columns, a number picks an element of a list: `reward_model.ground_truth.target`,
    `prompt.0.content`. A list's elements joined by commas are one answer with `.*` at the end: `final_answer.*`.
    """

    prompt: str = "problem"
    gold: str = "answer"
    level: str | None = None  # read only where data.levels chooses among its values
    response: str | None = None  # a whole response to learn from; read by maspo-rl sft only


@dataclass
class DataConfig:
    """One data set: the embedded arithmetic (`name: arithmetic`), a hub's, or local files.

    Held-out problems come from `heldout_files` or, without any local files, from `heldout_split` of the hub. Where
    neither is set, the hash of a problem's text takes `heldout_share` of the training source out of training.
    """

    name: str = "arithmetic"  # names the verifier's rules for the answers, and the benchmark in reports
    hub: str | None = None  # hub name owner/name
    subset: str | None = None  # the hub's name for a part of the data set, such as gsm8k's "main"
    revision: str | None = None  # commit, branch or tag on the hub; null: its default branch
    split: str | None = "train"  # the hub's split to train on; null: none, the set is a benchmark
    heldout_split: str | None = None  # the hub's split to evaluate on
    files: Any = None  # a local .jsonl, .json or .parquet file, or a list of them, used in place of the hub
    heldout_files: Any = None  # the same for held-out problems
    heldout_share: float = 0.05
    # Rows of the held-out split as published, one number per copy in use; checked where it serves as a benchmark.
    rows: list[int] = field(default_factory=list)
    columns: ColumnsConfig = field(default_factory=ColumnsConfig)
    # The gold answer is what follows the last occurrence of this text, up to the matching brace if it ends with "{".
    gold_pattern: str | None = None
    remove: list[str] = field(default_factory=list)  # texts to take out of the problem, such as another's instruction
    # Levels to use, empty: all. Arithmetic: 1 to 5, see maspo_rl/data/arithmetic.py; else values of columns.level.
    levels: list[str] = field(default_factory=list)
    problems: int | None = None  # at most this many training problems; null: all, of the arithmetic 10,000
    # Names in configs/data whose held-out problems are taken out of training; null: those that the run is evaluated on
    decontaminate: list[str] | None = None
    template: str = field(default="chat", metadata={"choices": ("chat", "plain")})  # chat: the tokenizer's own
    system: str | None = None  # system turn of the chat
    instruction: str | None = None  # follows the problem on a line of its own
    plain_template: str = "{problem}"  # the whole prompt of template "plain"; {problem} is problem and instruction
    max_prompt_tokens: int = 1024  # a longer prompt is left out and counted
    shuffle: bool = True  # a fresh order each epoch; false: the order of the source
