"""The sequences of a step, flat, and how they are dealt to updates, ranks and micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maspo_rl.types import Group, Totals

Int = NDArray[np.int64]
Float = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SequenceBatch:
    """S sequences of a step. Row r's tokens, prompt then response, are `token_ids[start[r]:start[r + 1]]`.

    `rollout_logprob` is flat over response tokens only, row after row; `response_start` says where each row's begin.
    Rows of a group stand together and have the same prompt.
    """

    token_ids: Int
    start: Int
    prompt_length: Int
    response_length: Int
    response_start: Int
    rollout_logprob: Float
    advantage: Float
    group: Int

    @classmethod
    def build(cls, groups: Sequence[Group], advantage: Sequence[float]) -> SequenceBatch:
        """`advantage` has one value per rollout, group after group.

        Raises:
            ValueError: the number of advantages is not the number of rollouts.
        """
        rows = [(index, group.prompt, rollout) for index, group in enumerate(groups) for rollout in group.rollouts]
        if len(rows) != len(advantage):
            raise ValueError(f"{len(advantage)} advantages were given for {len(rows)} rollouts")
        prompt_length = np.array([len(prompt.token_ids) for _, prompt, _ in rows], np.int64)
        response_length = np.array([len(rollout.token_ids) for _, _, rollout in rows], np.int64)
        return cls(
            token_ids=_concatenate([[*prompt.token_ids, *rollout.token_ids] for _, prompt, rollout in rows], np.int64),
            start=np.concatenate([[0], np.cumsum(prompt_length + response_length)]),
            prompt_length=prompt_length,
            response_length=response_length,
            response_start=np.concatenate([[0], np.cumsum(response_length)]),
            rollout_logprob=_concatenate([rollout.logprobs for _, _, rollout in rows], np.float32),
            advantage=np.asarray(advantage, np.float32),
            group=np.array([index for index, _, _ in rows], np.int64),
        )

    @property
    def lengths(self) -> Int:
        """Tokens of each row, prompt and response."""
        return self.prompt_length + self.response_length


@dataclass(frozen=True, slots=True)
class Update:
    """One optimiser update: for each rank, its micro-batches as row numbers. All ranks have equally many.

    An empty micro-batch keeps a rank in step with the others: collectives must be entered by all.
    """

    micro_batches: tuple[tuple[Int, ...], ...]
    totals: Totals


def plan_updates(batch: SequenceBatch, updates: int, ranks: int, micro_batch_tokens: int) -> list[Update]:
    """Deals a step's rows to updates (in order), ranks (balanced by tokens) and micro-batches (group after group).

    A pure function of its arguments, so that every rank makes the same plan. `micro_batch_tokens` bounds the tokens of
    a micro-batch, in which a prompt counts once for all rows of its group; a longer row is a micro-batch of its own.
    """
    plan = []
    for rows in np.array_split(np.arange(len(batch.advantage)), updates):
        if not len(rows):
            continue
        dealt = [_micro_batches(share, batch, micro_batch_tokens) for share in _balance(rows, batch, ranks)]
        most = max(len(share) for share in dealt)
        empty = np.empty(0, np.int64)
        totals = Totals(tokens=int(batch.response_length[rows].sum()), sequences=len(rows))
        plan.append(Update(tuple((*share, *[empty] * (most - len(share))) for share in dealt), totals))
    return plan


def _balance(rows: Int, batch: SequenceBatch, ranks: int) -> list[Int]:
    """Shares of like many tokens, one after the other: a prompt is repeated only where a share ends within a group."""
    starts_group = np.diff(batch.group[rows], prepend=-1) != 0
    cost = batch.response_length[rows] + batch.prompt_length[rows] * starts_group
    middle = np.cumsum(cost) - cost / 2
    return [rows[middle * ranks // cost.sum() == rank] for rank in range(ranks)]


def _micro_batches(rows: Int, batch: SequenceBatch, budget: int) -> list[Int]:
    """Fills one micro-batch after the other."""
    parts: list[list[int]] = []
    left, present = 0, -1
    for row in rows:
        prompt, response, group = int(batch.prompt_length[row]), int(batch.response_length[row]), int(batch.group[row])
        cost = response + prompt * (group != present)
        if not parts or cost > left:
            parts.append([])
            left, cost = budget, response + prompt
        parts[-1].append(int(row))
        left, present = left - cost, group
    return [np.array(part, np.int64) for part in parts]


def _concatenate(parts: Sequence[Sequence[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.asarray(part, dtype) for part in parts]) if parts else np.empty(0, dtype)
