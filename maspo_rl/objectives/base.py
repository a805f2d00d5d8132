"""What an objective is: a frozen dataclass of hyper-parameters that turns a batch of tokens into a loss per token.

Symbols used by all objectives: q = exp(old_logprob), r = exp(logprob - old_logprob), A = advantage, sg[x] = x without
gradient. Losses are minimised. The gradient weight of a token is w = -(d loss / d logprob) / A: 1 for plain policy
gradient, r for unclipped importance sampling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from maspo_rl.objectives.ratio import indicator, with_gradient
from maspo_rl.registry import require
from maspo_rl.types import Reduce, TokenBatch

Metric = Tensor | tuple[Tensor, Tensor]
"""Values[N], averaged over all tokens of the step, or (values, weights), averaged with the weights (a mask[N], or one
value and its weight); the maximum is taken where the name ends in `_max`. Detached."""


@dataclass(frozen=True, slots=True)
class TokenLoss:
    """`loss[N]` per token before aggregation, and `slope[N]`, its derivative by logprob.

    Where a loss depends on several tokens, `slope` is the derivative of its sequence's sum: aggregation weighs all
    tokens of a sequence alike. `ratio[N]` is the importance ratio that the objective acts on (a token's own, or its
    sequence's); `metrics` by name.
    """

    loss: Tensor
    slope: Tensor
    ratio: Tensor
    metrics: dict[str, Metric]


@dataclass(frozen=True, kw_only=True)
class Objective(ABC):
    """Base of all objectives. A subclass is one file with one method, `surrogate`.

    `dual_clip` c (Ye et al. 2020): a token with A < 0 and ratio > c has the constant loss -c A and no gradient.
    """

    needs_step: ClassVar[bool] = False
    """`observe` must see the whole optimiser step before its first micro-batch: true of a class that has its own."""
    observes_live: ClassVar[bool] = False
    """`observe` uses live log-probabilities; otherwise `logprob` of its batch may repeat `old_logprob`."""
    on_policy_twin: ClassVar[str | None] = None
    """The simpler objective that this one is where the policy has not moved (r = 1): with one update per batch."""
    per_sequence: ClassVar[bool] = False
    """The loss is one number a sequence, repeated on each of its tokens; made for seq-mean-token-mean."""

    dual_clip: float | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.needs_step = cls.observe is not Objective.observe

    def __post_init__(self) -> None:
        if self.dual_clip is not None:
            require(self.dual_clip > 1, "dual_clip", self.dual_clip, "must be above 1, or null")

    @property
    def needs_entropy(self) -> bool:
        """`TokenBatch.entropy` must be given."""
        return False

    @property
    def needs_proxy(self) -> float | None:
        """`TokenBatch.proxy_logprob` must be given, with this min-p filter."""
        return None

    @abstractmethod
    def surrogate(self, batch: TokenBatch, step: Any) -> TokenLoss:
        """The objective's own loss and slope, before dual clip: two new tensors. Runs without autograd."""

    def token_loss(self, batch: TokenBatch, step: Any = None) -> TokenLoss:
        """Loss per token [N] before aggregation, with its gradient by `batch.logprob`; `step` is what `observe`
        returned for this optimiser step."""
        with torch.no_grad():
            own = self.surrogate(batch, step)
            loss, slope = own.loss, own.slope
            # Few batches have such a token, and to look costs a fifteenth of the clip.
            if self.dual_clip is not None and len(loss) and float(own.ratio.amax()) > self.dual_clip:
                negative = indicator(torch.lt, batch.advantage, 0.0)
                beyond = indicator(torch.gt, own.ratio, self.dual_clip).mul_(negative)
                loss.lerp_(torch.mul(batch.advantage, -self.dual_clip, out=negative), beyond)
                slope.mul_(beyond.neg_().add_(1))
        metrics = own.metrics | {"policy/ratio_max": own.ratio}
        return TokenLoss(with_gradient(batch.logprob, loss, slope), slope, own.ratio, metrics)

    def observe(self, batch: TokenBatch, reduce: Reduce) -> Any:
        """Statistics over the whole optimiser step, the same on every rank; called when `needs_step`. `batch` holds all
        tokens of this rank's part of the step, without gradient."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """State across steps, for the checkpoint."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave. Raises ValueError for state that is not this objective's."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but the checkpoint has {sorted(state)}")


def entropy_of(batch: TokenBatch) -> Tensor:
    """The entropies [N]. Raises ValueError if the batch has none."""
    if batch.entropy is None:
        raise ValueError("TokenBatch.entropy is None: compute it where needs_entropy is true")
    return batch.entropy


def constant(value: float, like: Tensor) -> tuple[Tensor, Tensor]:
    """A metric that is the same for all tokens of `like` [N]."""
    return like.new_tensor(value), like.new_tensor(float(len(like)))
