"""One run: what it needs before anything starts, and its trainer on a running stack."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maspo_rl.config.check import Catalogue, check, check_fills_a_step
from maspo_rl.config.derived import evaluation_data, run_directory
from maspo_rl.config.errors import InputError
from maspo_rl.config.load import load, save
from maspo_rl.config.schema import Config
from maspo_rl.data import PromptSet, PromptStream, check_data, embedded_policy_path, load_prompts, load_tokenizer
from maspo_rl.evaluation.benchmarks import benchmark_config, check_complete, load_benchmark
from maspo_rl.evaluation.hygiene import decontaminate, untokenised
from maspo_rl.report.checkpoints import newest_whole
from maspo_rl.report.manifest import read_manifest
from maspo_rl.report.run_directory import RunDirectory
from maspo_rl.types import Prompt
from maspo_rl.verifier import Verifier

if TYPE_CHECKING:
    from maspo_rl.assembly import Stack
    from maspo_rl.trainer import OnStep, Trainer


@dataclass(frozen=True)
class Run:
    """A checked configuration, its prompts, and the directory that it writes to."""

    config: Config
    tokenizer: Any
    training: PromptSet
    heldout: list[Prompt]
    directory: RunDirectory
    checkpoint: Path | None
    """What the run goes on from; None for a new run."""

    def trainer(self, stack: Stack, on_step: OnStep) -> Trainer:
        """The trainer of this run on a stack that has begun it, where the run left off."""
        # Imported here: wrong input must be told before seconds are spent on vLLM, DeepSpeed and Ray.
        from maspo_rl.evaluation.evaluator import Evaluator  # noqa: PLC0415
        from maspo_rl.rollout import SamplingSettings  # noqa: PLC0415
        from maspo_rl.trainer import Trainer  # noqa: PLC0415

        evaluator = Evaluator(
            evaluation_data(self.config).name,
            self.heldout,
            self.config.eval.samples,
            SamplingSettings.for_evaluation(self.config),
            stack.engines,
            stack.verifier,
            self.directory.evaluation,
        )
        stream = PromptStream(self.training, self.config.seed, shuffle=self.config.data.shuffle)
        trainer = Trainer(self.config, stack, stream, evaluator, self.directory, on_step)
        trainer.load(self.checkpoint)
        return trainer


def prepare(config: Config, benchmarks: Mapping[str, Sequence[str]] | None = None) -> Run:
    """Everything that a run needs before anything is started, its directory included.

    `benchmarks` holds settings, such as "files=test.jsonl", of those that `data.decontaminate` names. Raises InputError
    for data that cannot fill a step and for a directory that cannot be written.
    """
    logging.getLogger("transformers").setLevel(logging.ERROR)
    tokenizer = load_tokenizer(config.model.path, config.model.revision)
    with Verifier(config.verifier) as verifier:
        check_golds, source = verifier.check_golds, evaluation_data(config)
        training = load_prompts(config.data, tokenizer, split="train", limit=None, check_golds=check_golds)
        heldout = load_prompts(source, tokenizer, split="heldout", limit=None, check_golds=check_golds)
    if config.eval.data is not None:
        check_complete(heldout, source)
    settings, guarded = benchmarks or {}, config.data.decontaminate
    apart = [benchmark_config(name, settings.get(name, ())) for name in guarded or ()]
    sets = [load_benchmark(*untokenised(data), limit=None) for data in apart]
    training = decontaminate(training, [heldout] if guarded is None else sets)
    check_fills_a_step(config, len(training), "prompts")
    directory = open_directory(config)
    checkpoint = checkpoint_of(config, directory)
    save(config, directory.config)
    return Run(config, tokenizer, training, list(heldout)[: config.eval.problems], directory, checkpoint)


def open_directory(config: Config) -> RunDirectory:
    """The run's directory, made and claimed. Raises InputError where it cannot be, or another process is in it."""
    directory = RunDirectory(run_directory(config))
    try:
        directory.create()
        directory.claim()
    except BlockingIOError as error:
        raise InputError(f"{directory.path}: another process runs in it; wait, or choose another run.name") from error
    except OSError as error:
        raise InputError(f"run.dir={config.run.dir}: {error.strerror}: {error.filename}; choose another") from error
    return directory


def checkpoint_of(config: Config, directory: RunDirectory) -> Path | None:
    """What the run goes on from. Raises InputError where none, or not the one named, is whole, and for other ranks."""
    if config.resume in ("auto", "never"):
        found = newest_whole(directory)
        if found is None:
            if there := directory.checkpoint_steps():
                raise InputError(
                    f"{directory.checkpoints}: none of its {len(there)} checkpoints is whole, and beginning anew would "
                    f"write over the run; choose another run.name, or delete {directory.path}"
                )
            return None
        checkpoint, manifest = found
    else:
        checkpoint = Path(config.resume)
        try:
            manifest = read_manifest(checkpoint)
        except ValueError as problem:
            raise InputError(f"resume={config.resume}: {problem}; name another checkpoint") from problem
    for key in ("ranks", "zero_stage"):
        if manifest[key] != (value := getattr(config.learner, key)):
            raise InputError(
                f"learner.{key}={value}: {checkpoint} was written with {manifest[key]}; resume with that, or start "
                f"from its policy: model.path={checkpoint / 'policy'}"
            )
    return checkpoint


def checked_config(overrides: list[str]) -> Config:
    """The configuration, after every check that reads no row and no weight. Raises InputError with all problems."""
    config = load(overrides)
    refuse(config)
    check_data(config.data)
    return config


def refuse(config: Config) -> None:
    """Raises InputError with everything that makes a run impossible and can be told from its configuration alone."""
    # Imported here: a misspelt key must be told before torch is.
    from maspo_rl import advantages  # noqa: PLC0415
    from maspo_rl.objectives.compose import build_policy_loss  # noqa: PLC0415

    if problems := check(config, Catalogue(build_policy_loss, advantages.build, embedded_policy_path())):
        raise InputError("\n".join(problems))
