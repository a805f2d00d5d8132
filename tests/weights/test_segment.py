"""Weights that are copied into the segment, and weights that lie in it."""

from __future__ import annotations

from multiprocessing.shared_memory import SharedMemory

import pytest
import torch

from maspo_rl.weights.layout import Segment, offsets
from maspo_rl.weights.source import GatheredSource


@pytest.fixture
def policy() -> torch.nn.Module:
    torch.manual_seed(0)
    head = torch.nn.Linear(5, 7)
    table = torch.nn.Embedding(7, 5)
    table.weight = head.weight  # tied
    return torch.nn.Sequential(table, torch.nn.Linear(5, 5).bfloat16(), head)


def segment_of(source: GatheredSource) -> Segment:
    metadata = source.metadata()
    *_, length = offsets(metadata)
    memory = SharedMemory(create=True, size=length)
    memory.unlink()
    return Segment(memory, metadata)


def test_weights_that_lie_in_the_segment_are_those_that_would_be_copied(policy: torch.nn.Module) -> None:
    source = GatheredSource(policy)
    copied, shared = segment_of(source), segment_of(source)
    before = copied.fill(source)
    assert before == copied.digest()
    source.move_into(shared.tensors)
    assert shared.fill(source) == before
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(1)  # an update: engines see it without a copy
    assert policy[0].weight is policy[2].weight
    assert shared.digest() == copied.fill(source) != before
    for (_, one), (_, other) in zip(shared.tensors, copied.tensors, strict=True):
        assert torch.equal(one, other)
