"""Prompts reach training once an epoch, at most once a step, and a restart changes nothing."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maspo_rl.data import PromptSet, PromptStream
from maspo_rl.types import Prompt


def stream_of(size: int) -> PromptStream:
    """A stream over `size` prompts."""
    return PromptStream(PromptSet(tuple(Prompt(str(i), (i,), "", "", "") for i in range(size)), {}), 0, shuffle=True)


def step_of(stream: PromptStream, count: int, unused: int) -> list[str]:
    """One step that takes `count` prompts, in two calls, and gives the last `unused` back; the ids trained on."""
    stream.begin_step()
    prompts = stream.take(count // 2) + stream.take(count - count // 2)
    stream.give_back(prompts[count - unused :])
    assert len({prompt.id for prompt in prompts}) == count
    return [prompt.id for prompt in prompts[: count - unused]]


@given(st.integers(2, 30), st.data())
def test_nothing_is_skipped_or_repeated_over_epochs(size: int, data: st.DataObject) -> None:
    stream = stream_of(size)
    trained: Counter[str] = Counter()
    while sum(trained.values()) < 3 * size:
        count = data.draw(st.integers(1, size))
        trained.update(step_of(stream, count, data.draw(st.integers(0, count - 1))))
    # Whoever waits, waits less than an epoch and a step: no prompt is more than two epochs ahead of another.
    assert max(trained.values()) - min(trained[str(index)] for index in range(size)) <= 2


@given(st.integers(4, 30), st.integers(0, 6), st.integers(1, 4))
def test_a_restart_changes_nothing(size: int, before: int, count: int) -> None:
    whole, stopped = stream_of(size), stream_of(size)
    for _ in range(before):
        assert step_of(whole, count, count // 2) == step_of(stopped, count, count // 2)
    resumed = stream_of(size)
    resumed.load_state_dict(stopped.state_dict())
    for _ in range(6):
        assert step_of(whole, count, count // 2) == step_of(resumed, count, count // 2)


def test_a_step_cannot_have_more_prompts_than_there_are() -> None:
    stream = stream_of(3)
    stream.begin_step()
    stream.take(2)
    with pytest.raises(ValueError, match="asked for 4 different prompts, the data has 3"):
        stream.take(2)
