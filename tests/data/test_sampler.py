"""The order of prompts: every epoch a permutation, and a restart changes nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maspo_rl.config.errors import InputError
from maspo_rl.data import PromptSampler

SIZES = st.integers(1, 40)
COUNTS = st.lists(st.integers(0, 50), max_size=12)


@given(size=SIZES, seed=st.integers(0, 2**32), counts=COUNTS, shuffle=st.booleans())
def test_each_epoch_holds_each_index_once(size: int, seed: int, counts: list[int], shuffle: bool) -> None:
    sampler = PromptSampler(size, seed, shuffle=shuffle)
    taken = [index for count in counts for index in sampler.next(count)]
    assert len(taken) == sum(counts)
    for start in range(0, len(taken), size):
        epoch = taken[start : start + size]
        assert len(set(epoch)) == len(epoch)
        assert set(epoch) <= set(range(size))


@given(size=SIZES, seed=st.integers(0, 2**32), before=COUNTS, after=COUNTS)
def test_a_restart_at_any_position_changes_nothing(size: int, seed: int, before: list[int], after: list[int]) -> None:
    sampler = PromptSampler(size, seed)
    for count in before:
        sampler.next(count)
    restored = PromptSampler(size, seed)
    restored.load_state_dict(json.loads(json.dumps(sampler.state_dict())))
    assert [sampler.next(count) for count in after] == [restored.next(count) for count in after]


def test_epochs_and_seeds_differ() -> None:
    first, other = PromptSampler(1000, 0), PromptSampler(1000, 1)
    epoch, second_epoch = first.next(1000), first.next(1000)
    assert epoch != second_epoch
    assert epoch != other.next(1000)
    # A shuffle leaves about one index in place, an unshuffled order all of them.
    assert sum(index == position for position, index in enumerate(epoch)) < 10


@pytest.mark.parametrize(("size", "seed", "shuffle"), [(9, 0, True), (10, 1, True), (10, 0, False)])
def test_state_of_other_data_is_refused(size: int, seed: int, shuffle: bool) -> None:
    state = PromptSampler(10, 0).state_dict()
    with pytest.raises(InputError, match="must not change"):
        PromptSampler(size, seed, shuffle=shuffle).load_state_dict(state)
