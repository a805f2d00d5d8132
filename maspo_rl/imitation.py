"""Supervised fine-tuning with the learner of reinforcement learning: the log-likelihood of demonstrations.

It is the policy gradient of RAFT's objective with an advantage of 1 on every token, so that batching, ZeRO, optimiser,
schedule and checkpoints are the trainer's own. Left out: packing, several epochs over a shuffled buffer, evaluation;
`maspo-rl eval` measures the policy that comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from maspo_rl.config.schema import Config
from maspo_rl.data import Demonstration, PromptSampler
from maspo_rl.learner import LearnerGroup, SequenceBatch
from maspo_rl.report.checkpoints import load_checkpoint, write_checkpoint
from maspo_rl.report.run_directory import RunDirectory
from maspo_rl.types import Group, Rollout

_KEPT = {"policy/loss": "sft/loss", "policy/entropy": "policy/entropy", "optim/grad_norm": "optim/grad_norm"} | {
    name: name for name in ("optim/lr", "optim/updates", "optim/skipped")
}


class Imitation:
    """A run over demonstrations, from its first or last checkpointed step to its end."""

    def __init__(
        self,
        config: Config,
        learners: LearnerGroup,
        demonstrations: list[Demonstration],
        directory: RunDirectory,
        on_step: Callable[[dict[str, Any]], None],
    ) -> None:
        self.config = config
        self.learners = learners
        self.demonstrations = demonstrations
        self.directory = directory
        self.on_step = on_step
        self.sampler = PromptSampler(len(demonstrations), config.seed, shuffle=config.data.shuffle)
        self.finished_steps = 0
        self.checkpointed_step: int | None = None
        self.stop_requested = False

    def run(self) -> None:
        """All steps of `trainer.prompts_per_step` demonstrations each, or those until `stop_requested`; a checkpoint as
        configured and at the end."""
        while self.finished_steps < self.config.trainer.steps and not self.stop_requested:
            batch = [self.demonstrations[index] for index in self.sampler.next(self.config.trainer.prompts_per_step)]
            updated = self.learners.step(sequences(batch))
            self.finished_steps += 1
            metrics = {"step": self.finished_steps} | {name: updated[key] for key, name in _KEPT.items()}
            self.directory.append_metrics(metrics)
            self.on_step(metrics)
            if self.config.checkpoint.every and self.finished_steps % self.config.checkpoint.every == 0:
                self.save()
        self.save()

    def save(self) -> None:
        """A complete checkpoint of the present step, unless it was written or loaded last."""
        step = self.finished_steps
        if step == self.checkpointed_step:
            return
        state = {"finished_steps": step, "demonstrations": self.sampler.state_dict()}
        write_checkpoint(self.directory, self.config, step, state, self.learners.save)
        self.checkpointed_step = step

    def load(self, checkpoint: Path | None) -> None:
        """Takes up where `checkpoint` was written; None: at the beginning."""
        if checkpoint is not None:
            state = load_checkpoint(checkpoint, self.learners.load)
            self.finished_steps = self.checkpointed_step = state["finished_steps"]
            self.sampler.load_state_dict(state["demonstrations"])
        self.directory.keep_metrics_up_to(self.finished_steps)


def sequences(demonstrations: list[Demonstration]) -> SequenceBatch:
    """Demonstrations as what the learner takes: responses that nobody sampled, with an advantage of 1."""
    groups = []
    for number, demonstration in enumerate(demonstrations):
        ids = demonstration.token_ids
        rollout = Rollout(demonstration.prompt.id, number, ids, (0.0,) * len(ids), "", "stop", version=0, seed=0)
        groups.append(Group(demonstration.prompt, (rollout,), (), ()))
    return SequenceBatch.build(groups, [1.0] * len(groups))
