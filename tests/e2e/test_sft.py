"""Demonstrations are learnt, and a run that was stopped goes on as if it had not been."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from stack import RunningStack, quickstart

from maspo_rl import assembly
from maspo_rl.assembly import learner_settings
from maspo_rl.cli import main
from maspo_rl.config.algorithm import AlgorithmConfig
from maspo_rl.config.schema import Config
from maspo_rl.data import load_demonstrations, load_tokenizer
from maspo_rl.imitation import Imitation
from maspo_rl.learner import LearnerGroup
from maspo_rl.report.manifest import read_manifest
from maspo_rl.report.progress import ProgressReport
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


def test_ctrl_c_leaves_a_checkpoint_and_the_same_command_goes_on(
    stack: RunningStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command itself, on the session's learner."""

    @contextmanager
    def learners(config: Config, tokenizer: Any, _: RunDirectory) -> Iterator[LearnerGroup]:
        stack.parts.learners.begin(learner_settings(config, tokenizer))
        yield stack.parts.learners

    def advance(_: ProgressReport, step: int, figures: str) -> None:
        if step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(assembly, "running_learners", learners)
    monkeypatch.setattr(ProgressReport, "advance", advance)
    overrides = ["model.dtype=float32", "trainer.steps=4", "trainer.updates_per_step=1", f"run.dir={tmp_path}"]
    command = ["sft", "experiment=quickstart", *overrides]
    try:
        assert main(command) == 0
        said = capsys.readouterr()
        assert said.out.startswith("2 of 4 steps done; the same command goes on from here\n")
        assert "SIGINT: finishing this step, then writing a checkpoint" in said.err
        assert read_manifest(tmp_path / "quickstart-sft-s0" / "checkpoints" / "step_2")["step"] == 2
        assert main(command) == 0
        assert capsys.readouterr().out.startswith("4 of 4 steps done\n")
    finally:
        stack.begin()


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
