"""Rows of a step as the tensors of one forward pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from maspo_rl.learner.batch import Int, SequenceBatch


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """B rows padded on the right to T tokens, and their N response tokens flat. A row's last token is only a target.

    Padding on the right needs no mask: causal attention never looks ahead of a token, so that no response token sees
    padding. `position[N]` indexes the flattened [B*T] hidden states from which `target[N]` is predicted.
    """

    input_ids: Tensor
    position: Tensor
    target: Tensor
    sequence: Tensor
    group: Tensor
    advantage: Tensor
    rollout_logprob: Tensor


def collate(batch: SequenceBatch, rows: Int, pad_token_id: int, device: torch.device) -> MicroBatch:
    """The micro-batch of `rows`. No rows give one padded row of two tokens and N = 0: its loss is empty, its
    collectives are not."""
    if not len(rows):
        empty = torch.empty(0, dtype=torch.int64, device=device)
        return MicroBatch(
            input_ids=torch.full((1, 2), pad_token_id, device=device),
            position=empty,
            target=empty,
            sequence=empty,
            group=empty,
            advantage=empty.float(),
            rollout_logprob=empty.float(),
        )
    lengths = batch.lengths[rows]
    width = int(lengths.max())
    inside = np.arange(width) < lengths[:, None]
    input_ids = np.full((len(rows), width), pad_token_id, np.int64)
    input_ids[inside] = np.concatenate([batch.token_ids[batch.start[row] : batch.start[row + 1]] for row in rows])
    is_response = inside & (np.arange(width) >= batch.prompt_length[rows][:, None])
    row, column = np.nonzero(is_response)
    count = batch.response_length[rows]
    logprobs = [batch.rollout_logprob[batch.response_start[row] : batch.response_start[row + 1]] for row in rows]

    def tensor(values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(device, non_blocking=True)

    return MicroBatch(
        input_ids=tensor(input_ids[:, :-1]),
        position=tensor(row * (width - 1) + column - 1),
        target=tensor(input_ids[row, column]),
        sequence=tensor(np.repeat(np.arange(len(rows)), count)),
        group=tensor(batch.group[rows]),
        advantage=tensor(np.repeat(batch.advantage[rows], count)),
        rollout_logprob=tensor(np.concatenate(logprobs)),
    )
