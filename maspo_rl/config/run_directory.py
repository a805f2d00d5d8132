"""May this run live in its directory, beside what lies there already?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from maspo_rl.config.derived import run_directory
from maspo_rl.config.errors import InputError
from maspo_rl.config.keys import leaves
from maspo_rl.config.load import read
from maspo_rl.config.ranges import value_at
from maspo_rl.config.schema import Config

# What makes a run the run it is. The rest (machines, deadlines, reports, length) may change between its sittings.
_IDENTITY = (
    "seed",
    "model.",
    "data.",
    "algorithm.",
    "optimizer.",
    "trainer.prompts_per_step",
    "trainer.updates_per_step",
    "rollout.samples_per_prompt",
    "rollout.temperature",
    "rollout.top_",
    "rollout.max_new_tokens",
    "rollout.stop",
    "verifier.correct_reward",
    "verifier.wrong_reward",
    "verifier.format_reward",
    "verifier.function",
    "verifier.extraction",
)


def run_directory_problems(config: Config) -> Iterator[str]:
    """One line for each reason why the run cannot live in its directory: it must be writable and hold no other run."""
    directory, resume = run_directory(config), config.resume
    if "/" in (config.run.name or "/") or config.run.name in (".", ".."):
        yield f"run.name={config.run.name}: must be one word without a slash; the place is run.dir"
        return
    existing = next(parent for parent in (directory, *directory.absolute().parents) if parent.exists())
    try:
        Path(tempfile.mkdtemp(prefix=".maspo-rl-", dir=existing)).rmdir()
    except OSError as error:
        yield f"run.dir={config.run.dir}: {existing} cannot be written ({error.strerror}); name another directory"
        return
    checkpoint = None if resume in ("auto", "never") else Path(resume)
    if checkpoint is not None and not checkpoint.is_dir():
        yield f"resume={resume}: no such checkpoint; use auto, never, or <run>/checkpoints/step_<n>"
        return
    saved = directory / "config.yaml"
    if not saved.exists():
        return
    if resume == "never":
        yield f"resume=never: {directory} holds a run already; choose another run.name, or resume=auto to go on with it"
    elif checkpoint is not None and directory.resolve() not in checkpoint.resolve().parents:
        yield f"resume={resume}: {directory} holds another run already; choose another run.name"
    else:
        yield from _differences(config, saved)


def _differences(config: Config, saved: Path) -> Iterator[str]:
    try:
        before = read(saved)
    except InputError as problem:
        yield str(problem)
        return
    identity = _IDENTITY + (() if config.optimizer.schedule == "constant" else ("trainer.steps",))
    changed = [
        f"{key}={value_at(before, key)} (now {value_at(config, key)})"
        for key, _ in leaves()
        if key.startswith(identity) and value_at(before, key) != value_at(config, key)
    ]
    if changed:
        yield f"{saved.parent} holds a run with {', '.join(changed)}; choose another run.name to keep both"
