"""Extreme but finite input gives finite losses and gradients."""

import itertools
from dataclasses import replace

import pytest
import torch
from token_cases import alone

from maspo_rl.objectives import build, catalogue
from maspo_rl.objectives.aggregation import MODES, NORMALISED, aggregate
from maspo_rl.objectives.penalties import kl_estimate
from maspo_rl.types import TokenBatch, Totals

LOG_RATIOS = [-1e4, -21.0, -1.0, 0.0, 1.0, 21.0, 1e4]
OLD = [0.0, -1e-8, -69.0, -1e4]
ADVANTAGES = [-1e6, -1.0, 0.0, 1.0, 1e6]


def extreme_batch(dtype, rows="one"):
    corners = torch.tensor(list(itertools.product(OLD, LOG_RATIOS, ADVANTAGES)), dtype=dtype)
    old, log_ratio, advantage = corners.unbind(1)
    tokens = len(corners)
    # sequences of one token each, or four long ones with an empty row 1 among them
    sequence = torch.arange(tokens) if rows == "one" else torch.tensor([0, 2, 3, 4]).repeat_interleave(tokens // 4)
    return TokenBatch(
        logprob=(old + log_ratio).requires_grad_(),
        old_logprob=old,
        rollout_logprob=old,
        advantage=advantage,
        sequence=sequence,
        group=torch.zeros(int(sequence.max()) + 1, dtype=torch.long),
        totals=Totals(tokens, len(sequence.unique())),
        entropy=torch.zeros_like(old),
        proxy_logprob=torch.where(log_ratio == 0, -torch.inf, old),
    )


def every_objective():
    return [
        *[(name, {}) for name in catalogue()],
        ("maspo", {"clamps": False}),
        ("aspo", {"epsilon_high_entropy": 0.4}),
    ]


def finite_step(objective, batch):
    with torch.no_grad():
        step = objective.observe(batch, alone) if objective.needs_step else None
    result = objective.token_loss(batch, step)
    assert result.loss.isfinite().all()
    for mode in MODES:
        total = aggregate(result.loss, batch.sequence, batch.totals, mode, 7.0 if mode in NORMALISED else None)
        (gradient,) = torch.autograd.grad(total, batch.logprob, retain_graph=True)
        assert total.isfinite()
        assert gradient.isfinite().all()
    return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", ["one", "long"])
@pytest.mark.parametrize(("name", "parameters"), every_objective())
def test_finite(name, parameters, rows, dtype):
    finite_step(
        build(name, **parameters, **({} if "dual_clip" in parameters else {"dual_clip": 3.0})),
        extreme_batch(dtype, rows),
    )
    finite_step(build(name, **parameters), extreme_batch(dtype, rows))


@pytest.mark.parametrize(("name", "parameters"), every_objective())
def test_without_advantage_nothing_moves(name, parameters):
    batch = extreme_batch(torch.float64)
    batch = replace(batch, advantage=torch.zeros_like(batch.advantage))
    result = finite_step(build(name, **parameters), batch)
    if name != "kl_cov":  # its penalty needs no advantage
        assert (result.slope == 0).all()
        assert (result.loss == 0).all()


@pytest.mark.parametrize("name", list(catalogue()))
def test_no_tokens_at_all(name):
    empty = torch.zeros(0, requires_grad=True)
    rows = torch.zeros(0, dtype=torch.long)
    batch = TokenBatch(empty, empty.detach(), empty.detach(), empty.detach(), rows, rows, Totals(0, 0))
    batch = replace(batch, entropy=empty.detach(), proxy_logprob=empty.detach())
    finite_step(build(name), batch)


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3", "k3_k2"])
def test_kl_finite(estimator):
    logprob = torch.tensor([0.0, -1e4, 0.0, -1e4], requires_grad=True)
    kl = kl_estimate(logprob, torch.tensor([-1e4, 0.0, 0.0, -1e4]), estimator)
    (gradient,) = torch.autograd.grad(kl.sum(), logprob)
    assert kl.isfinite().all()
    assert gradient.isfinite().all()
