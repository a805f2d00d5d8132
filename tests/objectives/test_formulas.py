"""The closed-form gradients against autograd through the papers' formulas, on random tokens."""

import pytest
import torch
from token_cases import evaluate
from torch import Tensor, where

from maspo_rl.objectives import build
from maspo_rl.types import TokenBatch, Totals


def ratio_of(batch: TokenBatch) -> Tensor:
    return (batch.logprob - batch.old_logprob).clamp(-20, 20).exp()


def clip(batch: TokenBatch, r: Tensor, low, high) -> Tensor:
    return torch.maximum(-batch.advantage * r, -batch.advantage * r.clamp(low, high))


def dual(batch: TokenBatch, loss: Tensor, c: float) -> Tensor:
    return where(batch.advantage < 0, torch.minimum(loss, -c * batch.advantage), loss)


def rows(batch: TokenBatch, values: Tensor) -> Tensor:
    """Mean over each sequence, for each token."""
    return torch.stack([values[batch.sequence == row].mean() for row in batch.sequence])


def ppo(batch):
    return clip(batch, ratio_of(batch), 0.8, 1.2)


def dapo(batch):
    return dual(batch, clip(batch, ratio_of(batch), 0.8, 1.28), 10)


def maspo(batch):
    r, a, q = ratio_of(batch), batch.advantage, batch.old_logprob.exp()
    mass = (1 / q**0.3).clamp(1, 10)
    positive = mass * (1 + 0.03 * a).clamp(0.1, 10)
    negative = mass * (1 / (1 - 0.03 * a)).clamp(0.1, 10)
    distance = (r.detach() - 1) ** 2 / 2
    gated = where((a < 0) & (r < 1), (-distance / negative**2).exp() * r, r)
    gated = where((a > 0) & (r > 1), (-distance / positive**2).exp() * r, gated)
    return -a * gated


def dcpo(batch):
    q = batch.old_logprob.exp()
    low = 0.5 + 0.5 * (1 - 0.64 / q).clamp(min=0).sqrt()
    high = (0.5 + 0.5 * (1 + 0.8 / q).sqrt()).clamp(max=10)
    return dual(batch, clip(batch, ratio_of(batch), low, high), 10)


def sapo(batch):
    tau = where(batch.advantage > 0, 1.0, 1.05 * torch.ones_like(batch.advantage))
    return -batch.advantage * 4 / tau * torch.sigmoid(tau * (ratio_of(batch) - 1))


def cispo(batch):
    return -ratio_of(batch).clamp(-9, 1.2).detach() * batch.advantage * batch.logprob


def kept(batch: TokenBatch, low: float, high: float, beta_low: float, beta_high: float) -> Tensor:
    r, a = ratio_of(batch), batch.advantage
    scale = where((a < 0) & (r < low), beta_low * low / r.detach(), torch.ones_like(r))
    scale = where((a > 0) & (r > high), beta_high * high / r.detach(), scale)
    return -a * scale * r


def gppo(batch):
    return dual(batch, kept(batch, 0.8, 1.28, 1, 1), 10)


def ce_gppo(batch):
    return dual(batch, kept(batch, 0.8, 1.2, 0.5, 1), 10)


def aspo(batch):
    r, a = ratio_of(batch), batch.advantage
    capped = r.clamp(max=1.2)
    inverted = -a * capped / capped.detach() / capped.detach()
    negative = -a * r.clamp(min=0.8)
    soft = -a * 3 * batch.logprob
    return where(a > 0, where(1 / capped > 3, soft, inverted), where(r > 3, soft, negative))


def dgpo(batch):
    r, a = ratio_of(batch), batch.advantage
    scale = where((a < 0) & (r < 0.8), r.detach() / 0.8, torch.ones_like(r))
    scale = where((a > 0) & (r > 1.2), (1.2 / r.detach()) ** 0.5, scale)
    return -a * scale * r


def raft(batch):
    return -batch.advantage * batch.logprob


def gspo(batch):
    s = rows(batch, batch.logprob - batch.old_logprob).exp().detach()
    return clip(batch, s * (batch.logprob - batch.logprob.detach()).exp(), 1 - 3e-4, 1 + 4e-4)


def gmpo(batch):
    sign, d = batch.advantage.sign(), batch.logprob - batch.old_logprob
    clipped = sign * torch.minimum(sign * d, sign * d.clamp(-0.4, 0.4))
    return -batch.advantage * rows(batch, clipped).exp()


FORMULAS = [ppo, dapo, maspo, dcpo, sapo, cispo, gppo, ce_gppo, aspo, dgpo, raft, gspo, gmpo]


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda formula: formula.__name__)
def test_closed_form_is_the_derivative(formula):
    generator = torch.Generator().manual_seed(7)
    sequence = torch.arange(40).repeat_interleave(25)
    old = -torch.rand(1000, generator=generator, dtype=torch.float64).square() * 8
    noise = torch.randn(1000, generator=generator, dtype=torch.float64)
    advantage = torch.randn(40, generator=generator, dtype=torch.float64)[sequence]
    live = (old + noise).clamp(max=0).requires_grad_()
    batch = TokenBatch(live, old, old, advantage, sequence, torch.zeros(40, dtype=torch.long), Totals(1000, 40))
    result, weights = evaluate(build(formula.__name__), batch)
    expected = formula(batch)
    (gradient,) = torch.autograd.grad(expected.sum(), live)
    assert torch.allclose(result.loss, expected, rtol=1e-12, atol=1e-14)
    assert torch.allclose(-weights * advantage, gradient, rtol=1e-10, atol=1e-14)
