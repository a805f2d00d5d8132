"""The optimiser against torch's own, its refusal of non-finite gradients, and the schedule's closed forms."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from maspo_rl.config.schema import OptimizerConfig
from maspo_rl.learner.optimizer import FiniteAdamW, RoundedAdamW, learning_rate

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


def rounded_pair(monkeypatch: pytest.MonkeyPatch) -> tuple[list[torch.Tensor], RoundedAdamW]:
    monkeypatch.setattr("maspo_rl.learner.optimizer.PORTION", 4)  # several portions
    weights = [torch.nn.Parameter(weight.detach().bfloat16()) for weight in parameters()]
    return weights, RoundedAdamW(weights, CONFIG, lambda squares: squares, math.inf)


@pytest.mark.parametrize("size", [1e-3, 5.0])
def test_half_precision_weights_follow_float32_ones(monkeypatch: pytest.MonkeyPatch, size: float) -> None:
    """Against torch's AdamW on float32 weights, with and without clipping; a rate that bfloat16 alone would lose."""
    weights, optimizer = rounded_pair(monkeypatch)
    optimizer.set_lr(1e-5)
    exact = [torch.nn.Parameter(weight.detach().float()) for weight in weights]
    reference = torch.optim.AdamW(exact, lr=1e-5, weight_decay=0.05)
    for step in range(300):
        for weight, other in zip(weights, exact, strict=True):
            weight.grad = torch.full_like(weight, size * (1 + step % 3))
            other.grad = weight.grad.float()
        torch.nn.utils.clip_grad_norm_(exact, 1.0)
        reference.step()
        optimizer.step()
    for weight, other in zip(weights, exact, strict=True):
        torch.testing.assert_close(weight, other.bfloat16(), rtol=2**-8, atol=0)
        assert (weight.float() - other).abs().max() <= 2**-8 * other.abs().max()
    assert optimizer.grad_norm == pytest.approx(size * 3 * math.sqrt(17), rel=1e-2)


def test_half_precision_weights_go_on_from_a_saved_state(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, optimizer = rounded_pair(monkeypatch)
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    saved, state = [weight.detach().clone() for weight in weights], copy.deepcopy(optimizer.state_dict())
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    others, loaded = rounded_pair(monkeypatch)
    for other, weight in zip(others, saved, strict=True):
        other.data.copy_(weight)
        other.grad = torch.ones_like(other)
    loaded.load_state_dict(state)
    loaded.step()
    assert all(torch.equal(other, weight) for other, weight in zip(others, weights, strict=True))
    with pytest.raises(ValueError, match="older version"):
        loaded.load_state_dict({"optimizer_state_dict": {}, "fp32_groups": []})


def test_half_precision_weights_stay_where_a_gradient_is_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, optimizer = rounded_pair(monkeypatch)
    before = [weight.detach().clone() for weight in weights]
    for weight in weights:
        weight.grad = torch.full_like(weight, math.inf)
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
