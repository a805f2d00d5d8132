"""How a step's rows are dealt out: nothing lost, nothing twice, every rank in step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maspo_rl.learner.batch import SequenceBatch, plan_updates
from maspo_rl.types import Group, Prompt, Rollout


def batch_of(lengths: list[tuple[int, int]]) -> SequenceBatch:
    """Rows of (prompt tokens, response tokens), each its own group."""
    groups = [
        Group(
            Prompt(str(row), tuple(range(prompt)), "", "", ""),
            (Rollout(str(row), 0, tuple(range(response)), (-1.0,) * response, "", "stop", 0, 0),),
            (),
            (),
        )
        for row, (prompt, response) in enumerate(lengths)
    ]
    return SequenceBatch.build(groups, [float(row) for row in range(len(lengths))])


rows = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 40)), min_size=1, max_size=40)


@given(rows, st.integers(1, 5), st.integers(1, 4), st.integers(1, 120))
def test_every_row_is_dealt_once_and_all_ranks_have_equally_many_micro_batches(
    lengths: list[tuple[int, int]], updates: int, ranks: int, budget: int
) -> None:
    batch = batch_of(lengths)
    plan = plan_updates(batch, updates, ranks, budget)
    dealt = [row for update in plan for share in update.micro_batches for part in share for row in part]
    assert sorted(dealt) == list(range(len(lengths)))
    for update in plan:
        assert len(update.micro_batches) == ranks
        assert len({len(share) for share in update.micro_batches}) == 1
        for part in (part for share in update.micro_batches for part in share):
            assert len(part) <= 1 or batch.lengths[part].sum() <= budget
        own = [row for share in update.micro_batches for part in share for row in part]
        assert update.totals.sequences == len(own)
        assert update.totals.tokens == batch.response_length[np.array(own)].sum()


def test_updates_take_the_rows_in_order() -> None:
    plan = plan_updates(batch_of([(2, 3)] * 8), 4, 1, 1000)
    assert [sorted(np.concatenate(update.micro_batches[0])) for update in plan] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_a_missing_advantage_is_refused() -> None:
    group = Group(Prompt("p", (1,), "", "", ""), (Rollout("p", 0, (1,), (0.0,), "", "stop", 0, 0),), (), ())
    with pytest.raises(ValueError, match="2 advantages were given for 1 rollouts"):
        SequenceBatch.build([group], [1.0, 2.0])
