"""What an advantage estimator is: a frozen dataclass that turns a batch of rewards into one advantage a sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class Advantage(ABC):
    """Base of all estimators. Call it once for each rollout batch: some keep state from batch to batch."""

    needs_group: ClassVar[bool] = True
    """It compares the responses to one prompt: several must be sampled."""
    needs_greedy: ClassVar[bool] = False
    """It needs the reward of a greedy response to each prompt: `RewardBatch.greedy_reward`."""

    @abstractmethod
    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        """Advantages [S] in float64; `reward[S]` is `batch.reward` in float64."""

    def __call__(self, batch: RewardBatch) -> Tensor:
        """One advantage per sequence, [S] float32. Raises FloatingPointError if one is not finite."""
        advantage = self.estimate(batch, batch.reward.double()).float()
        if not bool(advantage.isfinite().all()):
            raise FloatingPointError(f"{type(self).__name__}: an advantage is not finite; rewards {batch.reward}")
        return advantage

    def state_dict(self) -> dict[str, Any]:
        """State across batches, for the checkpoint; of JSON types."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave. Raises ValueError for state that is not this estimator's."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but the checkpoint has {sorted(state)}")


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """Of the rewards of each group, repeated on its members: all [S], float64.

    `best` is the largest reward, `squares` the sum of squared deviations. `uniform` says that all rewards of the group
    are the same number; then `squares` is exactly 0 and `mean` exactly that number.
    """

    size: Tensor
    mean: Tensor
    best: Tensor
    squares: Tensor
    uniform: Tensor

    def std(self, unbiased: bool) -> Tensor:
        """Standard deviation, over n - 1 or n; 0 for a group of one."""
        return (self.squares / (self.size - int(unbiased)).clamp(min=1)).sqrt()


def group_statistics(reward: Tensor, group: Tensor) -> GroupStatistics:
    """Statistics of `reward[S]` (float64) by `group[S]`."""
    size = torch.bincount(group).double()
    zero = torch.zeros_like(size)
    low = zero.scatter_reduce(0, group, reward, "amin", include_self=False)
    high = zero.scatter_reduce(0, group, reward, "amax", include_self=False)
    uniform = low == high
    mean = torch.where(uniform, low, group_sum(reward, group) / size)
    squares = group_sum((reward - mean[group]).square(), group)
    return GroupStatistics(size[group], mean[group], high[group], squares[group], uniform[group])


def group_sum(values: Tensor, group: Tensor) -> Tensor:
    """Sum of `values[S]` by group, one for each group."""
    return values.new_zeros(len(torch.bincount(group))).index_add_(0, group, values)


def whiten(values: Tensor, length: Tensor, unbiased: bool) -> Tensor:
    """`values[S]`, standardised over all tokens of the batch; sequence i counts `length[i]` times.

    Divides by sqrt(variance + 1e-8) as verl does; `unbiased` takes the variance over one token less than there are.
    """
    weight = length.to(values)
    tokens = weight.sum()
    centred = values - (values * weight).sum() / tokens.clamp(min=1)
    variance = (centred.square() * weight).sum() / (tokens - int(unbiased)).clamp(min=1)
    return centred / (variance + 1e-8).sqrt()
