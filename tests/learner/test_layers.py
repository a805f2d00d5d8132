"""Normalisation and gated unit against autograd's gradients of transformers' own."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, Qwen2Config, Qwen3Config
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm
from transformers.models.qwen2.modeling_qwen2 import Qwen2MLP, Qwen2RMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3MLP, Qwen3RMSNorm

from maspo_rl.learner.layers import keep_inputs_alone

WIDTH = 48
SMALL = {"hidden_size": WIDTH, "intermediate_size": 80, "num_attention_heads": 3}
LAYERS = {
    "llama norm": lambda: LlamaRMSNorm(WIDTH),
    "qwen2 norm": lambda: Qwen2RMSNorm(WIDTH),
    "qwen3 norm": lambda: Qwen3RMSNorm(WIDTH),
    "llama mlp": lambda: LlamaMLP(LlamaConfig(**SMALL, mlp_bias=True)),
    "qwen2 mlp": lambda: Qwen2MLP(Qwen2Config(**SMALL)),
    "qwen3 mlp": lambda: Qwen3MLP(Qwen3Config(**SMALL)),
}


def gradients(layer: nn.Module, hidden: torch.Tensor) -> list[torch.Tensor]:
    """Of a sum in which every output counts differently: the output, and by the input and each parameter."""
    hidden = hidden.clone().requires_grad_()
    output = layer(hidden)
    weights = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).view_as(output).to(output.dtype)
    by = torch.autograd.grad((output * weights).sum(), [hidden, *layer.parameters()])
    return [output.detach(), *by]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("shape", [(1, 7, WIDTH), (1, 5, 3, WIDTH)])
@pytest.mark.parametrize("name", LAYERS)
def test_outputs_are_the_same_bits_and_gradients_the_same_within_rounding(
    name: str, shape: tuple[int, ...], dtype: torch.dtype, tolerance: float
) -> None:
    torch.manual_seed(0)
    theirs = LAYERS[name]().to(dtype)
    for parameter in theirs.parameters():
        parameter.data = torch.randn_like(parameter) / 3
    ours = copy.deepcopy(theirs)
    keep_inputs_alone(ours)
    assert "forward" in vars(ours)
    hidden = torch.randn(shape, dtype=dtype)
    (output, *by), (expected, *expected_by) = gradients(ours, hidden), gradients(theirs, hidden)
    assert torch.equal(output, expected)
    for one, other in zip(by, expected_by, strict=True):
        assert one.dtype == other.dtype
        assert (one - other).float().norm() <= tolerance * other.float().norm()


def test_a_layer_that_computes_something_else_is_left_alone() -> None:
    """Gemma's weight counts from one; under the same attribute's name it must be told apart by what it gives."""
    other = GemmaRMSNorm(WIDTH)
    other.variance_epsilon = other.eps
    keep_inputs_alone(other)
    assert "forward" not in vars(other)
