"""The keys of `maspo-rl eval` beside those of a run: `benchmarks`, `benchmarks.<name>.<key>` and `k`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from maspo_rl.config.errors import InputError
from maspo_rl.config.keys import choices
from maspo_rl.config.load import load
from maspo_rl.config.schema import Config
from maspo_rl.config.verifier import VerifierConfig


@dataclass(frozen=True)
class EvalCommand:
    """What is evaluated: `config` holds model, engines, sampling (`eval.*`), verifier and directory.

    `benchmarks` maps each name in `configs/data` to settings of its own, such as "files=test.jsonl".
    """

    config: Config
    benchmarks: dict[str, list[str]]
    k: list[int]


def load_eval(overrides: list[str], name: Callable[[Config], str] | None = None) -> EvalCommand:
    """From a command line; keys of a run go to `load`. Raises InputError for whatever is wrong in them. `name` makes up
    `run.name` where it is not given.

    `model=` also takes a directory or a hub name. Without `eval.samples`, as many samples are drawn as the largest k
    needs; without `k` it is `eval.samples`.
    """
    names: list[str] = []
    settings: defaultdict[str, list[str]] = defaultdict(list)
    numbers: list[int] = []
    passed: dict[str, str] = {}
    for text in overrides:
        key, _, value = text.partition("=")
        if key == "benchmarks":
            names = _list(key, value, str)
        elif key.startswith("benchmarks."):
            benchmark, _, rest = key.removeprefix("benchmarks.").partition(".")
            settings[benchmark].append(f"{rest}={value}")
        elif key == "k":
            numbers = _list(key, value, int)
        else:
            is_path = key == "model" and value not in choices("model") and "/" in value
            passed["model.path" if is_path else key] = text.removeprefix(key)
    if not names:
        raise InputError("benchmarks=[]: name at least one file of configs/data, benchmarks=[aime24,math500]")
    if stray := sorted(set(settings) - set(names)):
        raise InputError(f"benchmarks.{stray[0]}: is not among benchmarks=[{','.join(names)}]; add it, or leave it out")
    if numbers and "eval.samples" not in passed:
        passed["eval.samples"] = f"={max(numbers)}"
    config = load([key + value for key, value in passed.items()])
    numbers = numbers or [config.eval.samples]
    if min(numbers) < 1:
        raise InputError(f"k={min(numbers)}: must be at least 1")
    if max(numbers) > config.eval.samples:
        raise InputError(
            f"k={max(numbers)}: larger than the {config.eval.samples} samples of a problem (eval.samples); lower k or "
            "raise eval.samples"
        )
    if "run.name" not in passed:
        config.run.name = name(config) if name else f"eval-{_subject(config.model.path)}-s{config.seed}"
    return EvalCommand(config, {benchmark: settings[benchmark] for benchmark in names}, sorted(set(numbers)))


def load_rescore(overrides: list[str]) -> tuple[list[int], VerifierConfig]:
    """k, empty where none is given, and the verifier's settings. Raises InputError for any other key."""
    numbers: list[int] = []
    others = []
    for text in overrides:
        key, _, value = text.partition("=")
        if key == "k":
            numbers = _list(key, value, int)
        elif key.startswith("verifier."):
            others.append(text)
        else:
            raise InputError(f"{text}: --rescore takes k= and verifier.<key>= alone; nothing is sampled")
    if min(numbers, default=1) < 1:
        raise InputError(f"k={min(numbers)}: must be at least 1")
    return numbers, load(others).verifier


def _list(key: str, value: str, kind: type) -> list[Any]:
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError:
        parsed = None
    found = parsed if isinstance(parsed, list) else [parsed]
    if not found or any(type(entry) is not kind for entry in found):
        example = "[1,32]" if kind is int else "[aime24,math500]"
        raise InputError(f"{key}={value}: must be a list, {key}={example}")
    return found


def _subject(model: str) -> str:
    """A name for the run: of a checkpoint's policy, its run and step; else the last part of the path."""
    parts = Path(model).parts
    if len(parts) > 3 and parts[-3] == "checkpoints" and parts[-1] == "policy":
        return f"{parts[-4]}-{parts[-2]}"
    return parts[-1]
