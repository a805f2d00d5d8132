"""Demonstrations are learnt, and a run that was stopped goes on as if it had not been."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from stack import RunningStack, quickstart

from maspo_rl.assembly import learner_settings
from maspo_rl.config.algorithm import AlgorithmConfig
from maspo_rl.data import load_demonstrations, load_tokenizer
from maspo_rl.imitation import Imitation
from maspo_rl.report.run_directory import RunDirectory


def imitation(stack: RunningStack, path: Path, steps: int, losses: list[float]) -> Imitation:
    """A run of `steps` steps on the session's learner, begun anew."""
    config = quickstart(path, f"trainer.steps={steps}", "trainer.updates_per_step=1", "optimizer.lr=3e-4")
    config.algorithm = AlgorithmConfig(name="sft", objective={"name": "raft"})
    config.weights.max_logprob_gap = sys.float_info.max
    tokenizer = load_tokenizer("embedded")
    stack.parts.learners.begin(learner_settings(config, tokenizer))
    demonstrations, left_out = load_demonstrations(config.data, tokenizer, most_tokens=24)
    assert (len(demonstrations), left_out) == (10_000, 0)
    directory = RunDirectory(path)
    directory.create()

    def on_step(metrics: dict[str, Any]) -> None:
        losses.append(metrics["sft/loss"])

    return Imitation(config, stack.parts.learners, demonstrations, directory, on_step)


def weights(run: Imitation) -> dict[str, torch.Tensor]:
    return load_file(run.directory.checkpoint(run.finished_steps) / "policy" / "model.safetensors")


def test_demonstrations_are_learnt_across_a_stop(stack: RunningStack, tmp_path: Path) -> None:
    losses: list[float] = []
    whole = imitation(stack, tmp_path / "whole", 10, losses)
    whole.run()
    assert losses[-1] < 0.3 * losses[0]
    stopped: list[float] = []
    first = imitation(stack, tmp_path / "stopped", 5, stopped)
    first.run()
    second = imitation(stack, tmp_path / "stopped", 10, stopped)
    second.load(second.directory.checkpoint(5))
    second.run()
    stack.begin()
    assert stopped == losses
    for name, expected in weights(whole).items():
        assert torch.equal(weights(second)[name], expected), name
