"""What surrounds an objective: advantage transforms, Lopti, penalties, the entropy controller, diagnostics."""

from dataclasses import replace

import pytest
import torch
from token_cases import TOKENS, alone, evaluate, token_batch

from maspo_rl.config.algorithm import AlgorithmConfig
from maspo_rl.config.errors import InputError
from maspo_rl.objectives import build, catalogue
from maspo_rl.objectives.compose import build_policy_loss
from maspo_rl.objectives.penalties import AdaptiveEntropy, kl_estimate
from maspo_rl.objectives.reshaping import AdvantageReweighting, EntropyAdvantage
from maspo_rl.types import Totals


def batch_of(tokens, **fields):
    values = {name: torch.tensor(value, dtype=torch.float64) for name, value in fields.items()}
    return replace(token_batch(tokens), **values)


@pytest.mark.parametrize(
    ("alpha", "advantage", "entropy", "expected"),
    [
        (0.4, 1, 1.2, 1.48),
        (0.4, 1, 2, 1.5),
        (0.4, -1, 1.2, -0.52),
        (0.4, -1, 2, -0.5),
        (0.4, 0.3, 1.2, 0.45),
        (0.4, -0.5, 0.1, -0.46),
        (0.4, 0, 1.2, 0),
        (0.1, 1, 1.2, 1.12),
    ],
)
def test_entropy_advantage(alpha, advantage, entropy, expected):
    batch = batch_of([(0.5, 1.0, advantage)], entropy=[entropy])
    assert EntropyAdvantage(alpha, 2.0)(batch).item() == pytest.approx(expected)


@pytest.mark.parametrize("advantage", [1.0, -1.0])
@pytest.mark.parametrize(("alpha", "weights"), [(0.3, [0.715, 0.85, 1.0]), (0.2, [0.81, 0.9, 1.0])])
def test_advantage_reweighting(alpha, weights, advantage):
    batch = token_batch([(q, 1.3, advantage) for q in (0.05, 0.5, 1.0)])
    assert AdvantageReweighting(alpha)(batch).tolist() == pytest.approx([advantage * weight for weight in weights])


@pytest.mark.parametrize("low_first", [True, False])
def test_lopti_moves_improbable_tokens_first_and_every_token_once(low_first):
    config = AlgorithmConfig(objective={"name": "grpo"}, entropy_coefficient=0.1)
    config.lopti.threshold, config.lopti.low_first = 0.5, low_first
    tokens = [(0.1, 1.0, 1.0), (0.49, 1.0, -1.0), (0.5, 1.0, 1.0), (0.9, 1.0, 1.0)]
    moved = []
    for part in build_policy_loss(config).passes:
        batch = batch_of(tokens, entropy=[1.0] * 4)
        entropy = batch.entropy.requires_grad_()
        part(batch).loss.backward()
        assert ((batch.logprob.grad != 0) == (entropy.grad != 0)).all()
        moved.append(batch.logprob.grad.tolist())
    low, high = [-0.25, 0.25, 0, 0], [0, 0, -0.25, -0.25]  # of the mean over all four tokens
    assert moved == ([low, high] if low_first else [high, low])


@pytest.mark.parametrize(
    ("estimator", "value", "slope"),
    [("k1", 0.405465, 1.0), ("k2", 0.082201, 0.405465), ("k3", 0.072132, 1 / 3), ("k3_k2", 0.072132, 0.405465)],
)
def test_kl_estimators(estimator, value, slope):
    logprob = torch.tensor([0.3], dtype=torch.float64).log().requires_grad_()
    kl = kl_estimate(logprob, torch.tensor([0.2], dtype=torch.float64).log(), estimator)
    (gradient,) = torch.autograd.grad(kl.sum(), logprob)
    assert (kl.item(), gradient.item()) == pytest.approx((value, slope), abs=1e-6)


def test_entropy_bonus_on_logits():
    logits = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64).log().requires_grad_()
    entropy = -(logits.softmax(0) * logits.log_softmax(0)).sum()[None]
    batch = replace(token_batch([(0.7, 1.0, 0.0)]), entropy=entropy)
    loss = build_policy_loss(AlgorithmConfig(entropy_coefficient=0.001))(batch).loss
    loss.backward()
    assert loss.item() == pytest.approx(-0.000801819, abs=1e-9)
    assert logits.grad.tolist() == pytest.approx([0.000311601, -0.000161524, -0.000150077], abs=1e-9)


ENTROPIES = [0.3, 0.15, 0.1, 0.19, 0.25, 0.1]


@pytest.mark.parametrize(
    ("delta", "bounds", "applied", "after"),
    [
        (0.005, (-1, 1), [0, -0.005, 0, 0.005, 0, 0.005], [-0.005, 0, 0.005, 0.01, 0.005, 0.01]),
        (0.0001, (0, 0.005), [0, 0, 0.0001, 0.0002, 0, 0.0002], [0, 0.0001, 0.0002, 0.0003, 0.0002, 0.0003]),
    ],
)
def test_adaptive_entropy_also_through_a_checkpoint(delta, bounds, applied, after):
    controller = AdaptiveEntropy(0.2, delta, *bounds)
    for index, entropy in enumerate(ENTROPIES):
        batch = batch_of([(0.5, 1.0, 1.0)] * 2, old_logprob=[-entropy, -entropy])
        assert controller.observe(batch, alone) == pytest.approx(applied[index], abs=1e-12)
        assert controller.coefficient == pytest.approx(after[index], abs=1e-12)
        state = controller.state_dict()
        controller = AdaptiveEntropy(0.2, delta, *bounds)
        controller.load_state_dict(state)


def test_policy_loss_keeps_the_controllers_state():
    config = AlgorithmConfig()
    config.adaptive_entropy.target = 0.2
    policy = build_policy_loss(config)
    batch = batch_of([(0.9, 1.0, 1.0)], entropy=[0.1])
    assert policy.observe(batch, alone).entropy_coefficient == 0
    resumed = build_policy_loss(config)
    resumed.load_state_dict(policy.state_dict())
    step = resumed.observe(batch, alone)
    assert step.entropy_coefficient == pytest.approx(0.0001)
    assert resumed(batch, step).loss.item() == pytest.approx(-1 - 0.0001 * 0.1)


@pytest.mark.parametrize("name", [name for name, kind in catalogue().items() if name != "lp_reg"])
def test_composition_adds_nothing_of_its_own(name):
    batch = token_batch(TOKENS, rows=[0, 0, 1, 1, 2, 2, 2, 3])
    objective = build(name)
    result, weights = evaluate(objective, batch)
    policy = build_policy_loss(AlgorithmConfig(objective={"name": name}))
    loss = policy(batch, policy.observe(batch, alone) if policy.needs_step else None).loss
    loss.backward()
    assert loss.item() == pytest.approx(result.loss.mean().item())
    assert batch.logprob.grad.tolist() == pytest.approx((-weights * batch.advantage / len(TOKENS)).tolist())


def test_diagnostics_count_what_ppo_clips():
    tokens = [(0.05, 1.5, 1), (0.15, 1.1, 1), (0.95, 0.5, -1), (1.0, 1.0, -1), (0.95, 1.0, -2), (0.95, 0.5, 0)]
    metrics = build_policy_loss(AlgorithmConfig(objective={"name": "ppo"}))(token_batch(tokens)).metrics
    shown = {name: tuple(float(part) for part in pair) for name, pair in metrics.items() if isinstance(pair, tuple)}
    assert shown["policy/clip_fraction"] == pytest.approx((2 / 5, 5))
    assert shown["policy/clip_fraction_positive"] == pytest.approx((1 / 2, 2))
    assert shown["policy/clip_fraction_negative"] == pytest.approx((1 / 3, 3))
    assert shown["policy/gated_fraction"] == pytest.approx((0, 5))
    assert shown["policy/restricted_fraction_q0"] == pytest.approx((1, 1))
    assert shown["policy/restricted_fraction_q1"] == pytest.approx((0, 1))
    assert shown["policy/restricted_fraction_q9"] == pytest.approx((1 / 3, 3))
    assert shown["policy/gradient_share_positive"][0] == pytest.approx(1.1 / (1.1 + 1 + 2))
    assert metrics["policy/ratio_max"].max().item() == pytest.approx(1.5)


def test_diagnostics_see_maspos_gate():
    tokens = [(0.5, 1.5, 1), (0.5, 0.9, 1), (0.5, 1.0, 1), (0.5, 3.0, -1)]
    metrics = build_policy_loss(AlgorithmConfig())(token_batch(tokens)).metrics
    assert float(metrics["policy/gated_fraction"][0]) == pytest.approx(1 / 4)
    assert float(metrics["policy/clip_fraction"][0]) == 0
    gate, gated = metrics["policy/gate_mean"]
    assert gated.tolist() == [True, False, False, False]
    assert gate[0].item() < 1 == gate[1].item() == gate[2].item() == gate[3].item()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entropy_coefficient": -1.0}, "entropy_coefficient"),
        ({"objective": {"name": "mapso"}}, "did you mean 'maspo'"),
        ({"objective": {"name": "maspo", "alpha": -0.1}}, "alpha"),
        ({"objective": {"name": "maspo", "dual_clip": 1.0}}, "dual_clip"),
        ({"kl": {"coefficient": -0.1}}, r"kl\.coefficient"),
        ({"kl": {"estimator": "k4"}}, r"kl\.estimator"),
        ({"aggregation": {"mode": "mean"}}, r"aggregation\.mode"),
        ({"entropy_advantage": {"alpha": 0.4, "kappa": 1.0}}, "kappa"),
        ({"advantage_reweighting": {"alpha": 1.5}}, r"advantage_reweighting\.alpha"),
        ({"lopti": {"threshold": 1.0}}, r"lopti\.threshold"),
        ({"adaptive_entropy": {"target": -1.0}}, r"adaptive_entropy\.target"),
        ({"adaptive_entropy": {"target": 0.2}, "entropy_coefficient": 0.1}, "entropy_coefficient"),
    ],
)
def test_wrong_settings_are_refused(change, message):
    config = AlgorithmConfig()
    for section, values in change.items():
        if section in ("objective", "entropy_coefficient"):
            setattr(config, section, values)
        else:
            for field, value in values.items():
                setattr(getattr(config, section), field, value)
    with pytest.raises(InputError, match=message):
        build_policy_loss(config)


def test_missing_statistics_are_a_fault():
    with pytest.raises(RuntimeError, match="call observe first"):
        build_policy_loss(AlgorithmConfig(objective={"name": "bapo"}))(token_batch(TOKENS))


def test_needs():
    config = AlgorithmConfig(objective={"name": "maspo"})
    policy = build_policy_loss(config)
    assert not any((policy.needs_entropy, policy.needs_reference, policy.needs_step, policy.observes_live))
    config.kl.coefficient, config.adaptive_entropy.target = 0.1, 0.2
    policy = build_policy_loss(config)
    assert policy.needs_entropy
    assert policy.needs_reference
    assert policy.needs_step
    assert not policy.observes_live
    assert build_policy_loss(AlgorithmConfig(objective={"name": "bapo"})).observes_live


def test_no_tokens():
    batch = batch_of([(0.5, 1.0, 1.0)])
    empty = {name: getattr(batch, name)[:0] for name in ("logprob", "old_logprob", "rollout_logprob", "advantage")}
    result = build_policy_loss(AlgorithmConfig())(
        replace(batch, **empty, sequence=batch.sequence[:0], totals=Totals(1, 1))
    )
    assert result.loss.item() == 0
