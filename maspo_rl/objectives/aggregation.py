"""From a loss per token to one number, over the whole optimiser step.

Each function takes the tokens of one micro-batch and the totals of the step, so that the plain sum over all
micro-batches and ranks is the aggregate of the step: neither value nor gradient depends on the split.
"""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor

from maspo_rl.config.algorithm import AggregationMode
from maspo_rl.registry import require
from maspo_rl.types import Totals

MODES: tuple[str, ...] = get_args(AggregationMode)
NORMALISED = ("token-sum-norm", "seq-mean-token-sum-norm")
"""The modes that divide by `constant`."""


def check_mode(mode: str, constant: float | None) -> None:
    """Raise InputError unless mode and constant go together."""
    require(mode in MODES, "aggregation.mode", mode, f"must be one of {', '.join(MODES)}")
    if mode in NORMALISED:
        given = constant is not None and constant > 0
        require(given, "aggregation.constant", constant, f"mode {mode} divides by it: set a number above 0")
    else:
        require(constant is None, "aggregation.constant", constant, f"mode {mode} does not use it: set null")


def token_weights(sequence: Tensor, totals: Totals, mode: str, constant: float | None, dtype: torch.dtype) -> Tensor:
    """Weight of each token's loss in the aggregate, [N] or one value for all; T tokens and S sequences in the step,
    n_i tokens in sequence i.

    token-mean 1/T (DAPO); token-sum 1; token-sum-norm 1/constant (no division by S); seq-mean-token-mean 1/(S n_i)
    (GRPO); seq-mean-token-sum 1/S; seq-mean-token-sum-norm 1/(S constant) (Dr.GRPO); seq-sum-token-mean 1/n_i (DCPO's
    OTM). S counts sequences with at least one token.
    """
    check_mode(mode, constant)
    weight = 1.0
    if mode == "token-mean":
        weight /= max(totals.tokens, 1)
    if mode.startswith("seq-mean"):
        weight /= max(totals.sequences, 1)
    if mode in NORMALISED and constant is not None:
        weight /= constant
    if mode in ("seq-mean-token-mean", "seq-sum-token-mean"):
        length = torch.bincount(sequence)
        return (weight / length.to(dtype))[sequence]
    return torch.tensor(weight, dtype=dtype, device=sequence.device)


def aggregate(loss: Tensor, sequence: Tensor, totals: Totals, mode: str, constant: float | None = None) -> Tensor:
    """This micro-batch's part, a scalar, of the step's aggregate. `loss[N]`, `sequence[N]` as in TokenBatch."""
    return (loss * token_weights(sequence, totals, mode, constant, loss.dtype)).sum()
