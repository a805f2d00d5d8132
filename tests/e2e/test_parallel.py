"""Two ranks under ZeRO train like one rank without it, and a process that has trained before like a new one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from stack import RunningStack, quickstart, sequence_batch

from maspo_rl.assembly import learner_settings
from maspo_rl.cluster import ActorDied
from maspo_rl.data import load_tokenizer
from maspo_rl.learner import LearnerGroup, LearnerSettings, SequenceBatch

STEPS = 5  # of two updates each: ten updates

Trained = tuple[list[float], dict[str, torch.Tensor]]


def settings_of(path: Path, *overrides: str) -> LearnerSettings:
    numbers = ("model.dtype=float32", "trainer.updates_per_step=2", "optimizer.lr=1e-4")
    config = quickstart(path, *numbers, *overrides)
    # The batches were sampled by another policy than the one that trains on them after the first update.
    config.weights.max_logprob_gap = 100.0
    return learner_settings(config, load_tokenizer("embedded"))


def trained(learners: LearnerGroup, batches: list[SequenceBatch], path: Path) -> Trained:
    """Losses of each step over `batches`, and the weights after them."""
    losses = [learners.step(batch)["policy/loss"] for batch in batches]
    learners.save(path / "saved")
    return losses, load_file(path / "saved" / "policy" / "model.safetensors")


@pytest.fixture(scope="module")
def batches(stack: RunningStack) -> list[SequenceBatch]:
    version = stack.publish()
    return [sequence_batch(stack.sample(version, step), step) for step in range(STEPS)]


@pytest.fixture(scope="module")
def single(stack: RunningStack, batches: list[SequenceBatch], tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """One rank without ZeRO: the session's own learner, begun anew."""
    path = tmp_path_factory.mktemp("zero0")
    stack.parts.learners.begin(settings_of(path))
    result = trained(stack.parts.learners, batches, path)
    stack.begin()
    return result


@pytest.fixture(scope="module")
def pair(stack: RunningStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LearnerGroup]:
    path = tmp_path_factory.mktemp("pair")
    config = quickstart(path, "learner.ranks=2")
    learners = LearnerGroup(config, settings_of(path, "learner.ranks=2"), path / "logs")
    learners.wait_until_ready()
    yield learners
    learners.end()


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_two_ranks_with_zero_equal_one_without(
    stage: int, pair: LearnerGroup, single: Trained, batches: list[SequenceBatch], tmp_path: Path
) -> None:
    # A small budget makes several, and unequally many, micro-batches on each rank. Large models need stage 3 and
    # activation checkpointing together.
    overrides = ("learner.ranks=2", f"learner.zero_stage={stage}", "learner.micro_batch_tokens=300")
    pair.begin(settings_of(tmp_path, *overrides, f"learner.gradient_checkpointing={stage == 3}"))
    losses, weights = trained(pair, batches, tmp_path)
    assert losses == pytest.approx(single[0], rel=1e-4, abs=1e-5)
    for name, expected in single[1].items():
        torch.testing.assert_close(weights[name], expected, rtol=0, atol=2e-5)


def test_the_rank_that_died_is_named_and_not_the_one_that_lost_it(
    stack: RunningStack, pair: LearnerGroup, batches: list[SequenceBatch], tmp_path: Path
) -> None:
    """The other rank fails at a collective, perhaps before the death is known. Ends `pair`: the last test with it."""
    pair.begin(settings_of(tmp_path, "learner.ranks=2"))
    (killed,) = stack.order(("learner_1", "backward", "kill", 1))
    with pytest.raises(ActorDied, match="learner rank 1 died during 'step'"):
        pair.step(batches[0])
    assert killed.exists()


def test_a_process_that_has_trained_before_trains_like_a_new_one(
    stack: RunningStack, single: Trained, batches: list[SequenceBatch], tmp_path: Path
) -> None:
    stack.parts.learners.begin(settings_of(tmp_path))
    losses, weights = trained(stack.parts.learners, batches, tmp_path)
    stack.begin()
    assert losses == single[0]
    for name, expected in single[1].items():
        assert torch.equal(weights[name], expected), name
