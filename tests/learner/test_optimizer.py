"""The optimiser against torch's own, its refusal of non-finite gradients, and the schedule's closed forms."""

from __future__ import annotations

import math

import pytest
import torch

from maspo_rl.config.schema import OptimizerConfig
from maspo_rl.learner.optimizer import FiniteAdamW, learning_rate

CONFIG = OptimizerConfig(lr=0.1, weight_decay=0.05, max_grad_norm=1.0)


def parameters() -> list[torch.nn.Parameter]:
    torch.manual_seed(1)
    return [torch.nn.Parameter(torch.randn(4, 3)), torch.nn.Parameter(torch.randn(5))]


def optimizer_over(weights: list[torch.nn.Parameter], largest_norm: float = math.inf) -> FiniteAdamW:
    return FiniteAdamW(weights, CONFIG, lambda squares: squares, largest_norm)


def test_equals_adamw_with_clipping() -> None:
    ours, theirs = parameters(), parameters()
    optimizer = optimizer_over(ours)
    reference = torch.optim.AdamW(theirs, lr=0.1, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.05)
    for step in range(5):
        for own, other in zip(ours, theirs, strict=True):
            own.grad = torch.full_like(own, 0.5 + step)
            other.grad = own.grad.clone()
        norm = torch.nn.utils.clip_grad_norm_(theirs, 1.0)
        reference.step()
        optimizer.step()
        assert optimizer.applied
        assert optimizer.grad_norm == pytest.approx(norm.item(), rel=1e-6)
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_a_non_finite_gradient_changes_nothing(poison: float) -> None:
    weights = parameters()
    optimizer = optimizer_over(weights)
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    before = [weight.detach().clone() for weight in weights]
    moments = [optimizer.state[weight]["exp_avg"].clone() for weight in weights]
    weights[1].grad[2] = poison
    optimizer.step()
    assert not optimizer.applied
    assert not math.isfinite(optimizer.grad_norm)
    for weight, old, moment in zip(weights, before, moments, strict=True):
        assert torch.equal(weight, old)
        assert torch.equal(optimizer.state[weight]["exp_avg"], moment)


def test_a_norm_above_the_guard_changes_nothing() -> None:
    weights = parameters()
    optimizer = optimizer_over(weights, largest_norm=5.0)
    before = [weight.detach().clone() for weight in weights]
    for weight in weights:
        weight.grad = torch.full_like(weight, 2.0)  # a norm of 2 sqrt(17) = 8.2
    optimizer.step()
    assert not optimizer.applied
    assert all(torch.equal(weight, old) for weight, old in zip(weights, before, strict=True))


def test_schedule() -> None:
    config = OptimizerConfig(lr=1.0, warmup_steps=4, schedule="cosine")
    assert [learning_rate(config, update, 12) for update in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert learning_rate(config, 8, 12) == pytest.approx(0.5)
    assert learning_rate(config, 12, 12) == pytest.approx(0.0)
    linear = OptimizerConfig(lr=1.0, schedule="linear")
    assert learning_rate(linear, 3, 4) == pytest.approx(0.25)
    assert learning_rate(OptimizerConfig(lr=3.0), 99, 100) == 3.0
