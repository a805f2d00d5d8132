"""Rows of a step as the tensors of one forward pass."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from maspo_rl.learner.attention import Packing, Piece, pack
from maspo_rl.learner.batch import Int, SequenceBatch


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """T tokens in one row and their N response tokens, flat: each group's prompt once, then each of its responses.

    A response's last token is only a target, and not among the T. `target[N]` is predicted from token `source[N]`, of
    which the last of a prompt predicts the first of every response. `position[T]` counts from a prompt's first token.
    """

    token_ids: Tensor
    position: Tensor
    packing: Packing
    source: Tensor
    target: Tensor
    sequence: Tensor
    group: Tensor
    advantage: Tensor
    rollout_logprob: Tensor

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Packing, Tensor, Tensor]:
        """What `Policy` takes first."""
        return self.token_ids, self.position, self.packing, self.source, self.target


def collate(batch: SequenceBatch, rows: Int, pad_token_id: int, device: torch.device, dtype: torch.dtype) -> MicroBatch:
    """The micro-batch of `rows`, those of a group one after the other. No rows give one token and N = 0: its loss is
    empty, its collectives are not."""

    def tensor(values: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(device, non_blocking=True)

    zero = np.zeros(1, np.int64)
    packed = _packed(batch, rows) if len(rows) else _Packed([Piece(0, 1)], [zero + pad_token_id], [zero], [])
    count = batch.response_length[rows]
    spans = [slice(batch.response_start[row], batch.response_start[row + 1]) for row in rows]
    ends = batch.start[rows + 1]
    return MicroBatch(
        token_ids=tensor(np.concatenate(packed.token_ids)),
        position=tensor(np.concatenate(packed.position)),
        packing=pack(packed.pieces, device, dtype),
        source=tensor(_joined(packed.source, np.int64)),
        target=tensor(_joined([batch.token_ids[end - n : end] for end, n in zip(ends, count, strict=True)], np.int64)),
        sequence=tensor(np.repeat(np.arange(len(rows)), count)),
        group=tensor(batch.group[rows]),
        advantage=tensor(np.repeat(batch.advantage[rows], count)),
        rollout_logprob=tensor(_joined([batch.rollout_logprob[span] for span in spans], np.float32)),
    )


@dataclass(frozen=True, slots=True)
class _Packed:
    """What stands in the row, part after part, and for each response its `source`."""

    pieces: list[Piece]
    token_ids: list[Int]
    position: list[Int]
    source: list[Int]


def _packed(batch: SequenceBatch, rows: Int) -> _Packed:
    packed = _Packed([], [], [], [])
    end = 0

    def add(token_ids: Int, first_position: int, prefix: Piece | None = None) -> Piece:
        nonlocal end
        piece = Piece(end, len(token_ids), *(prefix[:2] if prefix else ()))
        if piece.length:
            packed.pieces.append(piece)
            packed.token_ids.append(token_ids)
            packed.position.append(np.arange(first_position, first_position + piece.length))
            end += piece.length
        return piece

    for _, members in groupby(rows, key=lambda row: batch.group[row]):
        shared = list(members)
        begin, length = batch.start[shared[0]], int(batch.prompt_length[shared[0]])
        if len(shared) == 1:
            row = add(batch.token_ids[begin : batch.start[shared[0] + 1] - 1], 0)
            packed.source.append(np.arange(row.start + length - 1, end))
            continue
        prompt = add(batch.token_ids[begin : begin + length], 0)
        for row in shared:
            response = add(batch.token_ids[batch.start[row] + length : batch.start[row + 1] - 1], length, prompt)
            packed.source.append(np.concatenate([[length - 1 + prompt.start], np.arange(response.start, end)]))
    return packed


def _joined(parts: list[Any], dtype: type) -> np.ndarray:
    return np.concatenate(parts).astype(dtype) if parts else np.empty(0, dtype)
