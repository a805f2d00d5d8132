"""Normalisation and gated unit of a decoder layer, each as one operator that keeps its inputs alone for the backward
pass: a quarter less of activations than what autograd keeps of transformers' own, and the same bits forwards.

Compiled, they would keep as little; `torch.compile` of them costs 26 s once, and an update takes as long
(docs/decisions.md).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import silu


def keep_inputs_alone(model: nn.Module) -> None:
    """Has all layers of `model` that compute exactly what is computed here do it here; others stay as they are."""
    alike: dict[type, bool] = {}
    module: Any
    for module in model.modules():
        if isinstance(getattr(module, "variance_epsilon", None), float):
            lean, width = partial(_normalised, module), module.weight.shape[-1]
        elif all(hasattr(module, name) for name in ("gate_proj", "up_proj", "down_proj", "act_fn")):
            lean, width = partial(_gated, module), module.gate_proj.in_features
        else:
            continue
        if type(module) not in alike:
            alike[type(module)] = _gives_the_same(module, lean, width)
        if alike[type(module)]:
            module.forward = lean


@torch.no_grad()
def _gives_the_same(module: Any, lean: Any, width: int) -> bool:
    probe = torch.linspace(-3.0, 3.0, 4 * width, dtype=next(module.parameters()).dtype).view(4, width)
    return torch.equal(module(probe), lean(probe))


def _normalised(module: Any, hidden: Tensor) -> Tensor:
    return _RootMeanSquare.apply(hidden, module.weight, module.variance_epsilon)  # type: ignore[no-any-return, no-untyped-call]


def _gated(module: Any, hidden: Tensor) -> Tensor:
    gated = _Gate.apply(module.gate_proj(hidden), module.up_proj(hidden))  # type: ignore[no-untyped-call]
    return module.down_proj(gated)  # type: ignore[no-any-return]


class _RootMeanSquare(torch.autograd.Function):
    """weight * hidden / sqrt(mean(hidden**2) + epsilon) over the last dimension, which is divided in float32."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        wide = hidden.to(torch.float32)
        rate = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
        ctx.save_for_backward(hidden, weight, rate)
        return weight * (wide * rate).to(hidden.dtype)

    @staticmethod
    def backward(ctx: Any, by_output: Tensor) -> tuple[Tensor, Tensor | None, None]:
        hidden, weight, rate = ctx.saved_tensors
        normalised = hidden.to(torch.float32) * rate
        by_weight = None
        if ctx.needs_input_grad[1]:
            by_weight = (by_output * normalised).flatten(0, -2).sum(0).to(weight.dtype)
        by_normalised = (by_output * weight).to(torch.float32)
        along = torch.linalg.vecdot(by_normalised, normalised)[..., None] / hidden.shape[-1]
        return by_normalised.sub(normalised.mul_(along)).mul_(rate).to(hidden.dtype), by_weight, None


class _Gate(torch.autograd.Function):
    """silu(gate) * up."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, by_output: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        by_gate = torch.ops.aten.silu_backward(by_output * up, gate)
        return by_gate, silu(gate).mul_(by_output)
