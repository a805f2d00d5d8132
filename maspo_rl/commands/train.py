"""`maspo-rl train [overrides]`: a run, or the rest of one."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from maspo_rl.config.schema import Config
from maspo_rl.data import PromptSet
from maspo_rl.report.run_directory import RunDirectory
from maspo_rl.run import Run, checked_config, prepare


def main(overrides: list[str]) -> int:
    """Checks everything, then trains. 0 when the run is at its end, or was asked to stop and left a checkpoint."""
    return _train(prepare(checked_config(overrides)))


def _train(run: Run) -> int:
    # Imported here: wrong input must be told before seconds are spent on vLLM, DeepSpeed and Ray.
    from maspo_rl import supervision  # noqa: PLC0415
    from maspo_rl.assembly import running_stack  # noqa: PLC0415
    from maspo_rl.report.loggers import WandbLogger  # noqa: PLC0415
    from maspo_rl.report.plot import draw_curves  # noqa: PLC0415
    from maspo_rl.report.progress import ProgressReport  # noqa: PLC0415

    config, directory = run.config, run.directory
    resume = run.checkpoint
    done = int(resume.name.removeprefix("step_")) if resume else 0
    started = time.monotonic()
    wandb = WandbLogger(config.report, directory.path, config.run.name or "", asdict(config))
    with ProgressReport(config.trainer.steps, done, show=config.report.progress) as progress:
        progress.say(
            f"{config.run.name}: {config.algorithm.name} on {config.data.name}, {_words(config, run.training)}"
        )
        if warning := _inert_objective(config):
            progress.say(warning)
        progress.say(f"starting Ray, {config.rollout.engines} vLLM engine(s), {config.learner.ranks} learner rank(s)")

        def on_step(metrics: dict[str, Any]) -> None:
            wandb.log(metrics)
            for name, value in metrics.items():
                if name.startswith("eval/"):
                    progress.say(f"step {metrics['step']}: {name} {value:.3f}")
            if metrics["step"]:
                progress.step(metrics)

        with running_stack(config, run.tokenizer, directory) as stack:
            trainer = run.trainer(stack, on_step)
            if resume:
                progress.say(f"resumed from {resume}")
            progress.say(f"ready after {time.monotonic() - started:.0f} s; logs in {directory.logs}")
            with _stopping_on_signal(trainer, progress):
                supervision.run(trainer)
        draw_curves(directory.read_metrics(), directory.curves, config.run.name or "")
        wandb.close()
    _summarise(directory, trainer.finished_steps, config.trainer.steps)
    return 0


def _words(config: Config, training: PromptSet) -> str:
    left_out = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in training.counts.items() if count]
    return (
        f"{config.trainer.prompts_per_step} prompts x {config.rollout.samples_per_prompt} samples, "
        f"{config.trainer.updates_per_step} update(s) a step, {config.trainer.steps} steps; "
        f"{len(training):,} training prompts ({', '.join(left_out)})"
    )


def _inert_objective(config: Config) -> str | None:
    """A warning where the objective never gets to act."""
    from maspo_rl import objectives  # noqa: PLC0415

    name = config.algorithm.objective["name"]
    twin = objectives.catalogue()[name].on_policy_twin
    if twin is None or config.trainer.updates_per_step > 1:
        return None
    return (
        f"warning: trainer.updates_per_step=1: at the only update the policy is still the one that sampled, and {name} "
        f"is {twin}; set it to 2 or more to see a difference"
    )


@contextmanager
def _stopping_on_signal(trainer: Any, progress: Any) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM ends the run after the present step, with a checkpoint; the second at once."""

    def stop(number: int, _: object) -> None:
        if trainer.stop_requested:
            raise KeyboardInterrupt
        trainer.stop_requested = True
        name = signal.Signals(number).name
        progress.say(f"{name}: finishing this step, then writing a checkpoint; once more to stop at once")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _summarise(directory: RunDirectory, finished: int, steps: int) -> None:
    metrics = directory.read_metrics()
    print(f"{finished} of {steps} steps done" + ("" if finished >= steps else "; the same command goes on from here"))
    for name in sorted({key for line in metrics for key in line if key.startswith("eval/")}):
        values = [(line["step"], line[name]) for line in metrics if name in line]
        (first, before), (last, after) = values[0], values[-1]
        print(f"  {name}: {before:.1%} at step {first} -> {after:.1%} at step {last}")
    print(f"  curves      {directory.curves}")
    print(f"  samples     {directory.samples}")
    print(f"  evaluation  {directory.evaluation}")
    print(f"  policy      {directory.checkpoint(finished) / 'policy'}")
    sys.stdout.flush()
