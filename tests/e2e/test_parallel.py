"""Two ranks under ZeRO-3 train like one rank without ZeRO."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from stack import RunningStack, quickstart, sequence_batch

from maspo_rl.assembly import learner_settings
from maspo_rl.data import load_tokenizer, resolve_model
from maspo_rl.learner import LearnerGroup

STEPS = 5  # of two updates each: ten updates


def trained(path: Path, batches: list, *overrides: str) -> tuple[list[float], dict[str, torch.Tensor]]:
    """Losses of each step and the final weights of a fresh learner over `batches`."""
    config = quickstart(path, "trainer.updates_per_step=2", "optimizer.lr=1e-4", *overrides)
    # The batches were sampled by another policy than the one that trains on them after the first update.
    config.weights.max_logprob_gap = 100.0
    settings = learner_settings(config, resolve_model("embedded"), "float32", load_tokenizer("embedded"))
    learners = LearnerGroup(config, settings, path / "logs")
    learners.wait_until_ready()
    losses = [learners.step(batch)["policy/loss"] for batch in batches]
    learners.save(path / "saved")
    learners.end()
    return losses, load_file(path / "saved" / "policy" / "model.safetensors")


@pytest.fixture(scope="module")
def batches(stack: RunningStack) -> list:
    version = stack.publish()
    return [sequence_batch(stack.sample(version, step), step) for step in range(STEPS)]


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_two_ranks_with_zero_equal_one_without(
    stage: int, batches: list, tmp_path_factory: pytest.TempPathFactory, single: tuple
) -> None:
    path = tmp_path_factory.mktemp(f"zero{stage}")
    # A small budget makes several, and unequally many, micro-batches on each rank.
    losses, weights = trained(
        path, batches, "learner.ranks=2", f"learner.zero_stage={stage}", "learner.micro_batch_tokens=300"
    )
    assert losses == pytest.approx(single[0], rel=1e-4, abs=1e-5)
    for name, expected in single[1].items():
        torch.testing.assert_close(weights[name], expected, rtol=0, atol=2e-5)


@pytest.fixture(scope="module")
def single(batches: list, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    return trained(tmp_path_factory.mktemp("zero0"), batches, "learner.ranks=1", "learner.zero_stage=0")
