"""The loop.

prompts -> rollouts -> verdicts -> groups -> advantages -> updates -> weights back to the engines, once per step.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from maspo_rl import advantages
from maspo_rl.assembly import Stack
from maspo_rl.cluster import at_step
from maspo_rl.cluster.faults import fault_point
from maspo_rl.collection import Collector
from maspo_rl.config.schema import Config
from maspo_rl.data import PromptStream
from maspo_rl.evaluation.evaluator import Evaluator
from maspo_rl.guards import Guards, GuardStop
from maspo_rl.learner import SequenceBatch
from maspo_rl.report.checkpoints import load_checkpoint, write_checkpoint
from maspo_rl.report.run_directory import RunDirectory
from maspo_rl.types import Group, Label, RewardBatch

OnStep = Callable[[dict[str, Any]], None]


class Trainer:
    """One run, from its first or last checkpointed step to its end. `on_step` sees the metrics of every step."""

    def __init__(
        self,
        config: Config,
        stack: Stack,
        prompts: PromptStream,
        evaluator: Evaluator,
        directory: RunDirectory,
        on_step: OnStep,
    ) -> None:
        self.config = config
        self.stack = stack
        self.prompts = prompts
        self.evaluator = evaluator
        self.directory = directory
        self.on_step = on_step
        self.advantage = advantages.build(**config.algorithm.advantage)
        self.collector = Collector(config, stack.engines, stack.verifier, greedy=self.advantage.needs_greedy)
        self.finished_steps = 0
        self.checkpointed_step: int | None = None
        self.stop_requested = False
        self.guards = Guards(config.guards)
        self.history: list[dict[str, Any]] = []
        self.last_groups: list[Group] = []
        self.resumed_from: Path | None = None
        self._beginning = self.state_dict()

    @property
    def version(self) -> int:
        """Policy version: the number of finished steps."""
        return self.finished_steps

    def run(self) -> None:
        """Trains until the configured number of steps, or until `stop_requested`; leaves a complete checkpoint."""
        at_step(self.finished_steps)
        self.stack.publish(self.version)
        if self.finished_steps == 0 and self.config.eval.at_start:
            self.record({"step": 0, "version": 0} | self.evaluator.run(0, self.version))
        while self.finished_steps < self.config.trainer.steps and not self.stop_requested:
            self.record(self.step())
            self.guard()
            if self.due(self.config.checkpoint.every):
                self.save()
        self.save()

    def step(self) -> dict[str, Any]:
        """One step; the metrics of it."""
        step = self.finished_steps + 1
        times: dict[str, float] = {}
        at_step(step)
        fault_point("driver", "rollout")
        with timed(times, "rollout"):
            self.prompts.begin_step()
            collection = self.collector.collect(self.prompts.take, step=step, version=self.version)
            self.prompts.give_back(collection.unused)
        groups = self.last_groups = collection.groups
        fault_point("driver", "learn")
        self.directory.write_samples(f"step_{step}", groups, self.config.report.samples_per_step)
        updated: dict[str, float] = {"optim/updates": 0.0}
        with timed(times, "learn"):
            if groups:
                advantage = self.advantage(reward_batch(groups))
                updated = self.stack.learners.step(SequenceBatch.build(groups, advantage.tolist()))
        sampled_version = self.version
        self.finished_steps = step
        fault_point("driver", "transfer")
        with timed(times, "transfer"):
            self.stack.publish(self.version)
        evaluated: dict[str, float] = {}
        if self.due(self.config.eval.every) or (step == self.config.trainer.steps and self.config.eval.at_end):
            with timed(times, "evaluate"):
                evaluated = self.evaluator.run(step, self.version)
        spent = times["time/rollout_s"] + times["time/learn_s"] + times["time/transfer_s"]
        return {
            "step": step,
            "version": sampled_version,
            **collection.metrics,
            **updated,
            **evaluated,
            **times,
            "time/step_s": spent,
            "tokens/per_s": collection.metrics["response/tokens"] / spent,
        }

    def record(self, metrics: dict[str, Any]) -> None:
        """Writes a step's metrics to disk, then shows them."""
        fault_point("driver", "record")
        self.directory.append_metrics(metrics)
        self.history.append(metrics)
        self.on_step(metrics)

    def due(self, every: int) -> bool:
        """Whether something that happens every `every` steps happens after this one; 0 is never."""
        return every > 0 and self.finished_steps % every == 0

    def guard(self) -> None:
        """Holds the last steps against the configured guards; one that trips keeps the step's samples, and may stop."""
        for alarm in self.guards.check(self.history):
            name = f"{alarm.name}_step_{self.finished_steps}"
            path = self.directory.write_samples(name, self.last_groups, sum(len(g.rollouts) for g in self.last_groups))
            message = f"step {self.finished_steps}: guard {alarm.name}: {alarm.message}; its samples lie in {path}"
            if alarm.action == "stop":
                raise GuardStop(message)
            logging.getLogger(__name__).warning(message)

    def save(self) -> None:
        """A complete checkpoint of the present step, unless it was written or loaded last."""
        step = self.finished_steps
        if step == self.checkpointed_step:
            return
        fault_point("driver", "save")
        write_checkpoint(self.directory, self.config, step, self.state_dict(), self.stack.learners.save)
        self.checkpointed_step = step

    def load(self, checkpoint: Path | None) -> None:
        """Takes up where `checkpoint` was written; None: at the run's beginning, with learners as they start."""
        state = self._beginning
        if checkpoint is not None:
            state = load_checkpoint(checkpoint, self.stack.learners.load)
        self.load_state_dict(state)
        self.checkpointed_step = self.finished_steps if checkpoint else None
        self.directory.keep_metrics_up_to(self.finished_steps if checkpoint else -1)
        self.history = self.directory.read_metrics()
        self.resumed_from = checkpoint

    def state_dict(self) -> dict[str, Any]:
        """What the driver knows of the run between two steps; of JSON types."""
        return {
            "finished_steps": self.finished_steps,
            "prompts": self.prompts.state_dict(),
            "advantage": self.advantage.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""
        self.finished_steps = state["finished_steps"]
        self.prompts.load_state_dict(state["prompts"])
        self.advantage.load_state_dict(state["advantage"])


def reward_batch(groups: list[Group]) -> RewardBatch:
    """The rewards of all groups, flat."""
    greedy = [group.greedy_reward for group in groups if group.greedy_reward is not None]
    rows = [(index, group, member) for index, group in enumerate(groups) for member in range(len(group.rollouts))]
    return RewardBatch(
        reward=torch.tensor([group.rewards[member] for _, group, member in rows], dtype=torch.float64),
        correct=torch.tensor([group.verdicts[member].label is Label.CORRECT for _, group, member in rows]),
        length=torch.tensor([len(group.rollouts[member].token_ids) for _, group, member in rows]),
        group=torch.tensor([index for index, _, _ in rows]),
        prompt_ids=tuple(group.prompt.id for group in groups),
        greedy_reward=torch.tensor(greedy, dtype=torch.float64) if greedy else None,
    )


@contextmanager
def timed(times: dict[str, float], phase: str) -> Iterator[None]:
    """Notes the seconds of a phase as `time/<phase>_s`."""
    started = time.perf_counter()
    yield
    times[f"time/{phase}_s"] = time.perf_counter() - started
