"""AdamW that never applies a non-finite gradient, and its learning-rate schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from maspo_rl.config.schema import OptimizerConfig


class FiniteAdamW(torch.optim.AdamW):
    """AdamW with clipping by global norm, which leaves weights and moments untouched when the norm is not finite, or
    above `largest_norm`.

    DeepSpeed calls it with whatever it has partitioned: whole gradients, or this rank's share of them. `sum_squares`
    adds a number over the ranks that hold different shares, so that norm, clipping and refusal agree everywhere.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        config: OptimizerConfig,
        sum_squares: Callable[[Tensor], Tensor],
        largest_norm: float,
    ) -> None:
        super().__init__(
            parameters,
            lr=config.lr,
            betas=(config.betas[0], config.betas[1]),
            eps=config.eps,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self._max_norm = config.max_grad_norm
        self._largest_norm = largest_norm
        self._sum_squares = sum_squares
        self.refuse = False
        self.grad_norm = 0.0
        self.applied = False

    def set_lr(self, lr: float) -> None:
        for group in self.param_groups:
            group["lr"] = lr

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        gradients = [
            parameter.grad for group in self.param_groups for parameter in group["params"] if parameter.grad is not None
        ]
        squares = torch.stack([norm.double() for norm in torch._foreach_norm(gradients)]).square().sum()
        self.grad_norm = math.sqrt(self._sum_squares(squares).item())
        # False for a norm that is not a number, too.
        self.applied = self.grad_norm <= self._largest_norm and math.isfinite(self.grad_norm) and not self.refuse
        if not self.applied:
            return
        if self.grad_norm > self._max_norm:
            torch._foreach_mul_(gradients, self._max_norm / self.grad_norm)
        super().step()


def learning_rate(config: OptimizerConfig, update: int, total: int) -> float:
    """Rate of update `update` (from 0) of `total`: linear warm-up, then constant, cosine or linear to zero."""
    if update < config.warmup_steps:
        return config.lr * (update + 1) / config.warmup_steps
    done = (update - config.warmup_steps) / max(1, total - config.warmup_steps)
    shape = {"constant": 1.0, "cosine": 0.5 * (1 + math.cos(math.pi * done)), "linear": 1 - done}
    return config.lr * shape[config.schedule]
