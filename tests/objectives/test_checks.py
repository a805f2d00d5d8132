"""Numbers worked out by hand from the papers, one objective after the other."""

import math
from dataclasses import replace

import pytest
import torch
from token_cases import alone, evaluate, token_batch

from maspo_rl.objectives import build
from maspo_rl.objectives.base import Objective


def check(objective: Objective, token, loss=None, weight=None):
    result, weights = evaluate(objective, token_batch([token]))
    if loss is not None:
        assert result.loss.item() == pytest.approx(loss, abs=1e-5)
    if weight is not None:
        assert weights.item() == pytest.approx(weight, abs=1e-5)


@pytest.mark.parametrize(
    ("token", "parameters", "sigma", "gate"),
    [
        ((0.5, 1.1, 1), {}, 1.268079, 0.996895),
        ((0.2, 1.5, 1), {}, 1.669276, 0.956132),
        ((0.2, 1.5, 1), {"alpha": 0.5}, 2.303150, 0.976711),
        ((0.2, 0.5, -1), {}, 1.573453, 0.950764),
        ((0.05, 4, -1), {}, None, 1),
        ((0.2, 0.5, 1), {}, None, 1),
        ((0.001, 3, 2), {"alpha": 0.5}, 10.6, 0.982358),  # mass clamped from 31.6
        ((1e-6, 5, 1), {}, 10.3, 0.927365),  # mass clamped from 63.1
        ((1e-6, 5, 400), {}, 100, 0.999200),  # risk clamped from 13
        ((1e-4, 0.01, -400), {}, 1.0, 0.612596),  # risk clamped from 0.0769
        ((0.6, 0.7, -2), {}, 1.099636, 0.963469),
        ((1e-6, 5, 1), {"clamps": False}, 64.988557, 0.998108),
        ((0.5, 1.1, 1), {"mass": False}, 1.03, 0.995298),
        ((0.5, 1.1, 1), {"risk": False}, 1.231144, 0.996707),
    ],
)
def test_maspo_gate(token, parameters, sigma, gate):
    _, r, a = token
    check(build("maspo", **parameters), token, loss=-a * gate * r if abs(a) < 100 else None, weight=gate * r)
    if sigma is not None:
        assert math.exp(-((r - 1) ** 2) / 2 / sigma**2) == pytest.approx(gate, abs=1e-6)


def test_maspo_hard_gate_is_ppo():
    for token in [(0.2, 1.5, 1.0), (0.2, 1.1, 1.0), (0.2, 0.5, -1.0), (0.2, 2.0, -1.0)]:
        expected, weights = evaluate(build("ppo"), token_batch([token]))
        check(build("maspo", gate="hard"), token, loss=expected.loss.item(), weight=weights.item())


def test_maspo_largest_weight():
    # r F(r) peaks at r* = (1 + sqrt(1 + 4 sigma^2)) / 2: the golden ratio for sigma 1
    objective = build("maspo", mass=False, risk=False)
    golden = (1 + math.sqrt(5)) / 2
    peak = golden * math.exp(-((golden - 1) ** 2) / 2)
    check(objective, (0.1, golden, 1.0), weight=peak)
    for ratio in (golden - 0.01, golden + 0.01):
        _, weights = evaluate(objective, token_batch([(0.1, ratio, 1.0)]))
        assert weights.item() < peak


@pytest.mark.parametrize(
    ("epsilons", "token", "loss", "weight"),
    [
        ((0.16, 0.2), (0.2, 0.45, -1), 0.5, 0),
        ((0.16, 0.2), (0.2, 0.55, -1), 0.55, 0.55),
        ((0.16, 0.2), (0.9, 0.75, -1), 0.768742, 0),
        ((0.16, 0.2), (0.9, 0.78, -1), 0.78, 0.78),
        ((0.16, 0.2), (0.2, 1.7, 1), -1.618034, 0),
        ((0.16, 0.2), (0.2, 1.5, 1), -1.5, 1.5),
        ((0.16, 0.2), (0.001, 11, 1), -10, 0),
        ((0.16, 0.2), (0.001, 11, -1), 10, 0),
        ((0.16, 0.2), (0.05, 4, -1), 4, 4),
        ((0.2, 0.28), (0.2, 1.7, 1), -1.7, 1.7),
        ((0.2, 0.28), (0.2, 1.8, 1), -1.784523, 0),
        ((0.2, 0.28), (0.9, 0.75, -1), 0.75, 0.75),
        ((0.16, 0.2), (0.64, 2.0, 1), -1.25, 0),
        ((0.16, 0.2), (0.5, 2.0, 1), -1.306226, 0),
        ((0.16, 0.2), (0.01, 6.0, 1), -5.0, 0),
        ((0.2, 0.28), (0.01, 6.0, 1), -5.815073, 0),
        ((0.2, 0.28), (0.9, 0.1, -1), 0.666667, 0),
    ],
)
def test_dcpo_bounds(epsilons, token, loss, weight):
    check(build("dcpo", epsilon_low=epsilons[0], epsilon_high=epsilons[1]), token, loss, weight)


def test_aspo_soft_clip_keeps_the_gradient():
    check(build("aspo"), (0.2, 0.25, 1), loss=-3 * math.log(0.05), weight=3)


def test_aspo_two_ranges():
    # ten tokens of one response: the two of highest entropy may go up to 1.4, the others to 1.2
    batch = token_batch([(0.2, 1.3, 1.0)] * 10)
    object.__setattr__(batch, "entropy", torch.linspace(0, 1, 10, dtype=torch.float64))
    _, weights = evaluate(build("aspo", epsilon_high_entropy=0.4), batch)
    assert weights.tolist() == pytest.approx([0.0] * 8 + [1 / 1.3] * 2)


BAPO_TOKENS = [(0.5, 1.4, 1), (0.2, 2, 1), (0.6, 0.5, -1), (0.8, 0.8, -1), (0.3, 1.5, -1), (0.7, 1, -1)]
CODE = {"balance": "code", "low_start": 0.8, "low_end": 0.95, "low_step": 0.05, "high_end": 2.0, "high_step": 0.1}


@pytest.mark.parametrize(
    ("parameters", "low", "high", "balance"),
    [
        ({"target": 0.2}, 0.6, 1.2, 0.280936),
        ({"target": 0.3}, 0.6, 1.35, 0.305331),
        ({"target": 0.33}, 0.6, 1.8, 0.330218),
        ({"target": 0.4}, 0.9, 3.0, 0.313390),
        ({"target": 0.6, "balance": "net"}, 0.6, 1.2, 0.641221),
        ({"target": 0.5, **CODE}, 0.8, 1.2, 0.585366),
        ({"target": 0.8, **CODE}, 0.95, 2.0, 0.772727),
    ],
)
def test_bapo_bounds(parameters, low, high, balance):
    bounds = build("bapo", **parameters).observe(token_batch(BAPO_TOKENS), alone)
    assert (bounds.low, bounds.high) == pytest.approx((low, high))
    assert bounds.balance == pytest.approx(balance, abs=1e-6)


@pytest.mark.parametrize(
    ("ratios", "advantage", "s", "loss", "live"),
    [
        ([1.1, 0.95], 1, 1.02225242, -1.0004, False),
        ([1.1, 0.95], -1, 1.02225242, 1.02225242, True),
        ([1.0004, 1.0002], 1, 1.0003, -1.0003, True),
        ([0.999, 0.9995], -1, 0.99924997, 0.9997, False),
    ],
)
def test_gspo_sequences(ratios, advantage, s, loss, live):
    result, weights = evaluate(build("gspo"), token_batch([(0.3, r, advantage) for r in ratios]))
    assert result.ratio.tolist() == pytest.approx([s, s], abs=1e-7)
    assert result.loss.tolist() == pytest.approx([loss, loss], abs=1e-7)
    assert weights.tolist() == pytest.approx([s * live] * 2, abs=1e-7)


@pytest.mark.parametrize(
    ("ratios", "advantage", "ratio", "weights"),
    [
        ([2, 0.9, 1.1], 1, 1.138809, [0, 0.379603, 0.379603]),
        ([2, 0.9, 1.1], -1, 1.255707, [0.418569] * 3),
        ([0.5, 0.9, 1.1], -1, 0.872246, [0, 0.290749, 0.290749]),
        ([0.5, 0.9, 1.1], 1, 0.791046, [0.263682] * 3),
    ],
)
def test_gmpo_sequences(ratios, advantage, ratio, weights):
    result, summed = evaluate(build("gmpo"), token_batch([(0.3, r, advantage) for r in ratios]))
    assert result.loss.tolist() == pytest.approx([-advantage * ratio] * 3, abs=1e-6)
    assert (summed / 3).tolist() == pytest.approx(weights, abs=1e-6)  # of the sequence's mean


COVARIANCE_TOKENS = [(0.9, 1.0, 1), (0.1, 1.0, 1), (0.5, 1.0, -1), (0.01, 1.0, -1)]


def test_kl_cov_selects_the_largest_covariance():
    moved = [(probability / 1.1, 1.1, advantage) for probability, _, advantage in COVARIANCE_TOKENS]
    _, weights = evaluate(build("kl_cov"), token_batch(moved))
    assert weights.tolist() == pytest.approx([1.1, 1.1, 1.1, 1.1 + 1])


def test_clip_cov_draws_among_the_candidates():
    # covariances 1.82, -0.38, -1.23, 2.68: tokens 0 and 3 lie between 1 and 5
    result, weights = evaluate(build("clip_cov", fraction=0.5), token_batch(COVARIANCE_TOKENS))
    assert weights.tolist() == pytest.approx([0, 1, 1, 0])
    assert result.loss.tolist() == pytest.approx([0, -1, 1, 0])
    _, weights = evaluate(build("clip_cov"), token_batch(COVARIANCE_TOKENS))
    assert sorted(weights.tolist()) == pytest.approx([0, 1, 1, 1])
    assert weights[1] == weights[2] == 1


def proxy_batch(tokens, proxies):
    return replace(token_batch(tokens), proxy_logprob=torch.tensor(proxies, dtype=torch.float64).log())


def test_lp_reg_penalised_token():
    # two of four negative tokens are below the quantile: the first has pi .01 and proxy .03, the second is filtered
    batch = proxy_batch([(0.02, 0.5, -1), (0.01, 1, -1), (0.5, 1, -1), (0.6, 1, -1)], [0.03, 0, 0.6, 0.7])
    result, weights = evaluate(build("lp_reg", fraction=0.5), batch)
    assert result.loss[0].item() == pytest.approx(1.401388, abs=1e-6)
    assert weights.tolist() == pytest.approx([-1.5, 1, 1, 1])


def test_lp_reg_proxy_of_the_policy_itself():
    # kept mass .99 of (.6, .25, .12, .02, .01): the penalty at p = .02
    batch = proxy_batch([(0.02, 1, -1), (0.02, 1, -1)], [0.02 / 0.99] * 2)
    result, weights = evaluate(build("lp_reg", fraction=1.0), batch)
    assert result.loss[0].item() == pytest.approx(1 + 5.067e-5, abs=1e-8)
    assert weights[0].item() == pytest.approx(1 - 0.010101, abs=1e-6)
