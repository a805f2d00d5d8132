"""`maspo-rl train [overrides]`: a run, or the rest of one."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import Any

from maspo_rl.commands.stopping import steps_done, stopping_on_signal
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
            with stopping_on_signal(trainer, progress.say):
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


def _summarise(directory: RunDirectory, finished: int, steps: int) -> None:
    metrics = directory.read_metrics()
    print(steps_done(finished, steps))
    for name in sorted({key for line in metrics for key in line if key.startswith("eval/")}):
        values = [(line["step"], line[name]) for line in metrics if name in line]
        (first, before), (last, after) = values[0], values[-1]
        print(f"  {name}: {before:.1%} at step {first} -> {after:.1%} at step {last}")
    print(f"  curves      {directory.curves}")
    print(f"  samples     {directory.samples}")
    print(f"  evaluation  {directory.evaluation}")
    print(f"  policy      {directory.checkpoint(finished) / 'policy'}")
    sys.stdout.flush()
