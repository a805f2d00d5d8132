"""AdamW that works in float32 whatever the weights are in, and never applies a non-finite gradient; its schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, groupby
from typing import Any

import torch
from torch import Tensor

from maspo_rl.cluster.process import give_back_memory
from maspo_rl.config.schema import OptimizerConfig

PORTION = 1 << 24
"""Elements whose float32 gradients exist together, and the largest parameter's: 64 MiB."""


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
        scale = self._scale(gradients)
        if scale != 1.0:
            torch._foreach_mul_(gradients, scale)
        if self.applied:
            super().step()

    def _scale(self, gradients: list[Tensor]) -> float:
        """What clips the gradients; decides whether they are applied."""
        norms = torch._foreach_norm(gradients, dtype=torch.promote_types(gradients[0].dtype, torch.float32))
        squares = torch.stack([norm.double() for norm in norms]).square().sum()
        self.grad_norm = math.sqrt(self._sum_squares(squares).item())
        # False for a norm that is not a number, too.
        self.applied = self.grad_norm <= self._largest_norm and math.isfinite(self.grad_norm) and not self.refuse
        return self._max_norm / self.grad_norm if self.applied and self.grad_norm > self._max_norm else 1.0


class RoundedAdamW(FiniteAdamW):
    """`FiniteAdamW` of float32 copies of `rounded` parameters in half precision, which follow the copies.

    For DeepSpeed without ZeRO, whose own wrapper searches and copies all gradients in several passes and holds them in
    float32 all at once: 4 bytes a parameter, and a time that small steps notice.
    """

    def __init__(self, rounded: Sequence[Tensor], *arguments: Any) -> None:
        super().__init__([parameter.detach().float() for parameter in rounded], *arguments)
        self._pairs = list(zip(rounded, self.param_groups[0]["params"], strict=True))
        before = [0, *accumulate(parameter.numel() for parameter in rounded)]
        portions = groupby(zip(before, self._pairs, strict=False), key=lambda item: item[0] // PORTION)
        self._portions = [[pair for _, pair in portion] for _, portion in portions]

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        scale = self._scale([parameter.grad for parameter, _ in self._pairs if parameter.grad is not None])
        if self.applied and not self.state:
            give_back_memory()  # of activations: it lies too scattered for the moments that the first update makes
        for pairs in self._portions if self.applied else ():
            for parameter, copy in pairs:
                copy.grad = parameter.grad if parameter.grad is None else parameter.grad.float()
                parameter.grad = None  # the first update makes moments in its memory
            if scale != 1.0:
                torch._foreach_mul_([copy.grad for _, copy in pairs if copy.grad is not None], scale)
            torch.optim.AdamW.step(self)
            torch._foreach_copy_([parameter for parameter, _ in pairs], [copy for _, copy in pairs])
            for _, copy in pairs:
                copy.grad = None

    def state_dict(self) -> dict[str, Any]:
        """AdamW's, and the copies themselves."""
        return super().state_dict() | {"copies": [copy for _, copy in self._pairs]}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave; the parameters are loaded by whoever holds them.

        Raises:
            ValueError: the state is that of another optimiser, as DeepSpeed's wrapper wrote it.
        """
        if "copies" not in state_dict:
            raise ValueError(
                "the checkpoint's optimiser state has no float32 copies of the weights: an older version wrote it; "
                "begin a new run from its exported policy, model.path=.../policy"
            )
        adamw = dict(state_dict)
        torch._foreach_copy_([copy for _, copy in self._pairs], adamw.pop("copies"))
        super().load_state_dict(adamw)


def learning_rate(config: OptimizerConfig, update: int, total: int) -> float:
    """Rate of update `update` (from 0) of `total`: linear warm-up, then constant, cosine or linear to zero."""
    if update < config.warmup_steps:
        return config.lr * (update + 1) / config.warmup_steps
    done = (update - config.warmup_steps) / max(1, total - config.warmup_steps)
    shape = {"constant": 1.0, "cosine": 0.5 * (1 + math.cos(math.pi * done)), "linear": 1 - done}
    return config.lr * shape[config.schedule]
