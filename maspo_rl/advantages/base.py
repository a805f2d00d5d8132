"""What an advantage estimator is: a frozen dataclass that turns a batch of rewards into one advantage a sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class Advantage(ABC):
    """Base of all estimators. Call it once for each rollout batch: some keep state from batch to batch."""

    @abstractmethod
    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        """Advantages [S] in float64; `reward[S]` is `batch.reward` in float64."""

    def __call__(self, batch: RewardBatch) -> Tensor:
        """One advantage per sequence, [S] float32. Raises FloatingPointError if one is not finite."""
        advantage = self.estimate(batch, batch.reward.double())
        if not bool(advantage.isfinite().all()):
            raise FloatingPointError(f"{type(self).__name__}: an advantage is not finite; rewards {batch.reward}")
        return advantage.float()

    def state_dict(self) -> dict[str, Any]:
        """State across batches, for the checkpoint."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave. Raises ValueError for state that is not this estimator's."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but the checkpoint has {sorted(state)}")


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """Of the rewards of each group, repeated on its members: all [S], float64.

    `squares` is the sum of squared deviations; `uniform` says that all rewards of the group are the same number, and
    then `squares` is exactly 0 and `mean` exactly that number.
    """

    size: Tensor
    mean: Tensor
    squares: Tensor
    uniform: Tensor

    def std(self, unbiased: bool) -> Tensor:
        """Standard deviation, over n - 1 or n; 0 for a group of one."""
        return (self.squares / (self.size - int(unbiased)).clamp(min=1)).sqrt()


def group_statistics(reward: Tensor, group: Tensor) -> GroupStatistics:
    """Statistics of `reward[S]` (float64) by `group[S]`."""
    groups = int(group.max()) + 1 if len(group) else 0
    zero = reward.new_zeros(groups)
    size = torch.bincount(group, minlength=groups).double()
    mean = zero.index_add(0, group, reward) / size
    low = zero.scatter_reduce(0, group, reward, "amin", include_self=False)
    high = zero.scatter_reduce(0, group, reward, "amax", include_self=False)
    uniform = low == high
    mean = torch.where(uniform, low, mean)
    squares = zero.index_add(0, group, (reward - mean[group]).square())
    return GroupStatistics(size[group], mean[group], squares[group], uniform[group])
