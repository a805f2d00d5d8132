"""Attention over packed tokens: no padding between rows, and a prompt once for all the responses that share it.

A micro-batch is one row of tokens, cut into pieces. A piece attends causally to itself and, where it is a response of
a group, to all of its prompt, another piece. Everything else in the decoder works token by token and needs to know
nothing of it. Which kernel does it follows from the device and the number format: torch's variable-length attention on
CUDA, and elsewhere, where no such kernel exists, pieces of like lengths together, padded within the attention alone.

Left out: sliding windows, soft caps and sinks. A model that needs them is refused (`config/check.py`, and here).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding, scaled_dot_product_attention

PACKED = "maspo_packed"
"""The name by which transformers knows it."""
SHORT_KEYS = 384
"""Up to so many keys, products and a softmax of their own are faster than torch's fused kernel for CPUs, whose backward
pass alone takes two to five times as long in bfloat16 (docs/decisions.md)."""
_LEAST_FILLED = 0.75
"""Of a padded row of keys, how much the shortest piece beside the longest fills."""
_VARIABLE_LENGTH = (torch.bfloat16, torch.float16)


class Piece(NamedTuple):
    """`length` consecutive tokens from `start` on, after the `prefix_length` from `prefix_start` on."""

    start: int
    length: int
    prefix_start: int = 0
    prefix_length: int = 0

    @property
    def keys(self) -> int:
        """The most that one of its tokens sees."""
        return self.prefix_length + self.length


def pack(pieces: Sequence[Piece], device: torch.device, dtype: torch.dtype) -> Packing:
    """How the tokens of `pieces`, which follow one another without a gap, attend in `dtype` on `device`."""
    kernel = VariableLength if device.type == "cuda" and dtype in _VARIABLE_LENGTH else Buckets
    return kernel.of(pieces, device, dtype)


@dataclass(frozen=True, slots=True)
class VariableLength:
    """One call for all pieces, of which each has its own number of queries and keys.

    `key[K]` are the tokens that each piece sees, piece after piece; None where that is just every token once.
    """

    key: Tensor | None
    query_bounds: Tensor
    key_bounds: Tensor
    most_queries: int
    most_keys: int

    @classmethod
    def of(cls, pieces: Sequence[Piece], device: torch.device, dtype: torch.dtype) -> VariableLength:
        """See `pack`."""
        shared = any(piece.prefix_length for piece in pieces)
        key = np.concatenate([_seen(piece) for piece in pieces])

        def bounds(lengths: list[int]) -> Tensor:
            return torch.tensor([0, *np.cumsum(lengths)], dtype=torch.int32, device=device)

        return cls(
            key=torch.from_numpy(key).to(device) if shared else None,
            query_bounds=bounds([piece.length for piece in pieces]),
            key_bounds=bounds([piece.keys for piece in pieces]),
            most_queries=max(piece.length for piece in pieces),
            most_keys=max(piece.keys for piece in pieces),
        )

    def masked(self) -> VariableLength:
        """Itself: the kernel needs no mask."""
        return self

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """[T, heads, D] of query[T, heads, D], key and value[T, key heads, D]."""
        from torch.nn.attention.varlen import varlen_attn  # noqa: PLC0415 - registers operators of CUDA

        if self.key is not None:
            key, value = _take(key, self.key), _take(value, self.key)
        output = varlen_attn(
            query.contiguous(),
            key.contiguous(),
            value.contiguous(),
            self.query_bounds,
            self.key_bounds,
            self.most_queries,
            self.most_keys,
            scale=scale,
            window_size=(-1, 0),  # causal, aligned at the last query and key
            enable_gqa=query.shape[1] != key.shape[1],
        )
        return cast(Tensor, output)


@dataclass(frozen=True, slots=True)
class _Bucket:
    """B pieces of like lengths: the tokens that ask, query[B, Q], and those that they see, key[B, K], padded with any.

    Query q of piece b sees its first `reach[b, q]` + 1 keys. `bias`, the mask to add, is made for a forward pass.
    """

    query: Tensor
    key: Tensor
    reach: Tensor
    has_prefix: bool
    bias: Tensor | None = None

    @property
    def short(self) -> bool:
        return self.key.shape[1] <= SHORT_KEYS

    def masked(self, dtype: torch.dtype) -> _Bucket:
        """With a mask, unless the kernel's own causal one will do."""
        if not self.short and not self.has_prefix:
            return self
        hidden = torch.arange(self.key.shape[1], device=self.key.device) > self.reach[:, None, :, None]
        return replace(
            self, bias=torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)
        )

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """[B * Q, heads, D]"""
        query, key, value = (
            _take(tensor, index).transpose(1, 2)
            for tensor, index in ((query, self.query), (key, self.key), (value, self.key))
        )
        pieces, heads, asking, width = query.shape
        repeats = heads // key.shape[1]
        if self.short and self.bias is not None:
            grouped = (scale * query).reshape(pieces, -1, repeats * asking, width)
            scores = (grouped @ key.mT).view(pieces, heads, asking, -1) + self.bias
            weights = scores.softmax(-1).view(pieces, -1, repeats * asking, key.shape[2])
            output = (weights @ value).view(pieces, heads, asking, width)
        else:
            key, value = (tensor.repeat_interleave(repeats, 1) for tensor in (key, value))
            output = scaled_dot_product_attention(
                query, key, value, attn_mask=self.bias, is_causal=self.bias is None, scale=scale
            )
        return output.transpose(1, 2).flatten(0, 1)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Pieces sorted into buckets; token t's result is row `place[t]` of all their results."""

    buckets: tuple[_Bucket, ...]
    place: Tensor
    most_keys: int
    dtype: torch.dtype

    @classmethod
    def of(cls, pieces: Sequence[Piece], device: torch.device, dtype: torch.dtype) -> Buckets:
        """See `pack`."""
        buckets: list[list[Piece]] = []
        for piece in sorted(pieces, key=lambda piece: (piece.prefix_length > 0, -piece.keys)):
            longest = buckets[-1][0] if buckets else piece
            alike = piece.keys >= _LEAST_FILLED * longest.keys
            if not buckets or not alike or (piece.prefix_length > 0) != (longest.prefix_length > 0):
                buckets.append([])
            buckets[-1].append(piece)
        place, before = np.empty(sum(piece.length for piece in pieces), np.int64), 0
        made = []
        for members in buckets:
            width = max(piece.length for piece in members)
            for number, piece in enumerate(members):
                place[piece.start : piece.start + piece.length] = before + number * width + np.arange(piece.length)
            before += len(members) * width
            made.append(_bucket(members, width, device))
        return cls(tuple(made), torch.from_numpy(place).to(device), max(piece.keys for piece in pieces), dtype)

    def masked(self) -> Buckets:
        """With the masks of one forward pass, which its layers share."""
        return replace(self, buckets=tuple(bucket.masked(self.dtype) for bucket in self.buckets))

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """[T, heads, D] of query[T, heads, D], key and value[T, key heads, D]."""
        results = [bucket.attend(query, key, value, scale) for bucket in self.buckets]
        return _take(results[0] if len(results) == 1 else torch.cat(results), self.place)


Packing = VariableLength | Buckets


def _bucket(members: list[Piece], width: int, device: torch.device) -> _Bucket:
    query = np.zeros((len(members), width), np.int64)
    key = np.zeros((len(members), max(piece.prefix_length for piece in members) + width), np.int64)
    for number, piece in enumerate(members):
        query[number, : piece.length] = np.arange(piece.start, piece.start + piece.length)
        key[number, : piece.keys] = _seen(piece)
    reach = np.array([piece.prefix_length for piece in members])[:, None] + np.arange(width)
    tensors = [torch.from_numpy(array).to(device) for array in (query, key, reach)]
    return _Bucket(tensors[0], tensors[1], tensors[2], has_prefix=members[0].prefix_length > 0)


def _seen(piece: Piece) -> NDArray[np.int64]:
    """The tokens that the last of a piece sees."""
    prefix = np.arange(piece.prefix_start, piece.prefix_start + piece.prefix_length)
    return np.concatenate([prefix, np.arange(piece.start, piece.start + piece.length)])


def _take(tensor: Tensor, index: Tensor) -> Tensor:
    """tensor[index] along the first of three dimensions. The gradient of an embedding is a sum in parallel over rows,
    that of indexing one row after the other."""
    return embedding(index, tensor.reshape(len(tensor), -1)).view(*index.shape, *tensor.shape[1:])


def _attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    packing: Packing,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """What a transformers layer calls, with query[1, heads, T, D], key and value[1, key heads, T, D]."""
    if softcap is not None or s_aux is not None or packing.most_keys > (sliding_window or math.inf):
        raise ValueError(
            f"{type(module).__name__} asks for a sliding window, a soft cap or sinks: the learner has none"
        )
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    query, key, value = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    return packing.attend(query, key, value, scale)[None], None


def register_packed() -> None:
    """Makes it known to transformers, whose models' code this imports: 120 MiB and two seconds, which nobody but a
    learner shall spend."""
    from transformers import AttentionInterface  # noqa: PLC0415

    AttentionInterface.register(PACKED, _attention)
