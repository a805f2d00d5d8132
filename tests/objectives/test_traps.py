"""Mistakes that implementations of these objectives have made, each ruled out."""

import math
from dataclasses import replace

import pytest
import torch
from token_cases import TOKENS, evaluate, token_batch

from maspo_rl.advantages import build as build_advantage
from maspo_rl.objectives import build
from maspo_rl.types import RewardBatch


def test_maspos_gate_is_not_differentiated():
    _, weights = evaluate(build("maspo"), token_batch(TOKENS))
    differentiated = {0: 1.021571, 1: 1.048174, 2: 0.523386, 6: 2.669713}
    for index, wrong in differentiated.items():
        assert abs(weights[index].item() - wrong) > 0.02


def test_sapos_gate_is_differentiated():
    r, tau = 1.5, 1.0
    gate = 1 / (1 + math.exp(-tau * (r - 1)))
    _, weights = evaluate(build("sapo"), token_batch([(0.2, r, 1.0)]))
    assert weights.item() == pytest.approx(4 * gate * (1 - gate) * r)  # detached, it would be 4 / tau * gate


def test_on_policy_maspo_is_grpo():
    tokens = [(q, 1.0, a) for q, _, a in TOKENS]
    _, maspo = evaluate(build("maspo"), token_batch(tokens))
    _, grpo = evaluate(build("grpo"), token_batch(tokens))
    assert torch.equal(maspo, grpo)


def test_the_old_policy_not_the_engine_gives_ratio_and_mass():
    batch = token_batch(TOKENS)
    _, weights = evaluate(build("maspo"), batch)
    _, moved = evaluate(build("maspo"), replace(batch, rollout_logprob=batch.rollout_logprob - 1))
    assert torch.equal(weights, moved)


@pytest.mark.parametrize("name", ["maspo", "dgpo", "kl_cov", "grpo"])
def test_negative_tokens_are_unbounded_unless_asked(name):
    token = [(1e-3, 500.0, -1.0), (0.5, 1.0, 1.0)]
    parameters = {"coefficient": 0.0} if name == "kl_cov" else {}
    result, weights = evaluate(build(name, **parameters), token_batch(token))
    assert weights[0].item() == pytest.approx(500)
    assert result.metrics["policy/ratio_max"].max().item() == pytest.approx(500)
    result, weights = evaluate(build(name, dual_clip=3.0, **parameters), token_batch(token))
    assert (result.loss[0].item(), weights[0].item()) == pytest.approx((3.0, 0.0))


def test_std_over_n_or_less_one():
    group = torch.zeros(8, dtype=torch.long)
    reward = torch.tensor([1.0, 1, 0, 0, 0, 0, 0, 0])
    batch = RewardBatch(reward, reward > 0, torch.ones(8), group, ("a",))
    larger, smaller = build_advantage("grpo", unbiased=False)(batch), build_advantage("grpo")(batch)
    assert (larger / smaller).tolist() == pytest.approx([math.sqrt(8 / 7)] * 8, rel=1e-5)


@pytest.mark.parametrize("name", ["maspo", "sapo", "cispo", "grpo"])
def test_beyond_the_log_ratio_bound(name):
    # verl clamps the log-ratio to +-20: the ratio has no gradient beyond, but CISPO's is not the ratio's
    batch = token_batch([(0.5, 1.0, -1.0)])
    batch = replace(batch, logprob=(batch.old_logprob + 25.0).detach().requires_grad_())
    result, weights = evaluate(build(name), batch)
    assert result.ratio.item() == pytest.approx(math.exp(20))
    assert weights.item() == (1.2 if name == "cispo" else 0)
