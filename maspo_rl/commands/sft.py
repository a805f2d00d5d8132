"""`maspo-rl sft [overrides]`: supervised fine-tuning on demonstrations, the step that a base model needs before RLVR.

The keys are those of `train`; a step takes `trainer.prompts_per_step` demonstrations, whose responses stand in
`data.columns.response`.
"""

from __future__ import annotations

import sys
from typing import Any

from maspo_rl.commands.stopping import steps_done, stopping_on_signal
from maspo_rl.config.algorithm import AlgorithmConfig
from maspo_rl.config.check import check_fills_a_step
from maspo_rl.config.load import load, save
from maspo_rl.data import load_demonstrations, load_tokenizer
from maspo_rl.run import checkpoint_of, open_directory, refuse


def main(overrides: list[str]) -> int:
    """Checks everything, then trains. 0 when the run is at its end, or was asked to stop and left a checkpoint."""
    config = load(overrides, method="sft")
    config.algorithm = AlgorithmConfig(name="sft", objective={"name": "raft"})
    # Nobody sampled these responses, so that there are no engine's log-probs to hold the learner's against.
    config.weights.max_logprob_gap = sys.float_info.max
    refuse(config)
    tokenizer = load_tokenizer(config.model.path, config.model.revision)
    limit = config.rollout.max_new_tokens
    demonstrations, left_out = load_demonstrations(config.data, tokenizer, most_tokens=limit)
    check_fills_a_step(config, len(demonstrations), "demonstrations")
    directory = open_directory(config)
    checkpoint = checkpoint_of(config, directory)
    save(config, directory.config)
    # Imported here: wrong input must be told before seconds are spent on DeepSpeed and Ray.
    from maspo_rl.assembly import running_learners  # noqa: PLC0415
    from maspo_rl.imitation import Imitation  # noqa: PLC0415
    from maspo_rl.report.progress import ProgressReport  # noqa: PLC0415

    with ProgressReport(config.trainer.steps, 0, show=config.report.progress) as progress:
        progress.say(f"{config.run.name}: {len(demonstrations):,} demonstrations, {left_out:,} left out")

        def on_step(metrics: dict[str, Any]) -> None:
            progress.advance(metrics["step"], f"loss {metrics['sft/loss']:.4f}")

        with running_learners(config, tokenizer, directory) as learners:
            imitation = Imitation(config, learners, demonstrations, directory, on_step)
            imitation.load(checkpoint)
            with stopping_on_signal(imitation, progress.say):
                imitation.run()
    print(steps_done(imitation.finished_steps, config.trainer.steps))
    print(f"policy: {directory.checkpoint(imitation.finished_steps) / 'policy'}")
    return 0
