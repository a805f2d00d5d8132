"""The gradient of an optimiser step does not depend on its split into ranks and micro-batches."""

import threading
from dataclasses import fields, replace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maspo_rl.config.algorithm import AlgorithmConfig
from maspo_rl.objectives import catalogue
from maspo_rl.objectives.aggregation import MODES, NORMALISED
from maspo_rl.objectives.compose import build_policy_loss
from maspo_rl.types import TokenBatch, Totals

OPERATIONS = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}


def algorithm(name, mode="token-mean", **changes):
    config = AlgorithmConfig(objective={"name": name, **changes.pop("objective", {})})
    config.aggregation.mode = mode
    config.aggregation.constant = 64.0 if mode in NORMALISED else None
    for section, values in changes.items():
        if isinstance(values, dict):
            for field, value in values.items():
                setattr(getattr(config, section), field, value)
        else:
            setattr(config, section, values)
    return config


CASES = {
    **{name: algorithm(name) for name in catalogue()},
    **{f"maspo, {mode}": algorithm("maspo", mode) for mode in MODES},
    **{f"gmpo, {mode}": algorithm("gmpo", mode) for mode in MODES},
    "kl_cov, tenth": algorithm("kl_cov", objective={"fraction": 0.1}),
    "clip_cov, tenth": algorithm("clip_cov", objective={"fraction": 0.1, "covariance_low": 0.0}),
    "lp_reg, half": algorithm("lp_reg", objective={"fraction": 0.5}),
    "bapo, code": algorithm("bapo", objective={"balance": "code", "target": 0.7}),
    "aspo, entropy": algorithm("aspo", objective={"epsilon_high_entropy": 0.4}),
    "maspo, dual clip": algorithm("maspo", objective={"dual_clip": 1.5}),
    "maspo, entropy bonus": algorithm("maspo", entropy_coefficient=0.01),
    "maspo, adaptive entropy": algorithm("maspo", adaptive_entropy={"target": 1.5, "delta": 0.001}),
    "bapo, entropy advantage": algorithm("bapo", entropy_advantage={"alpha": 0.4}),
    "gspo, reweighting": algorithm("gspo", advantage_reweighting={"alpha": 0.3}),
    "gmpo, lopti": algorithm("gmpo", "seq-mean-token-mean", lopti={"threshold": 0.5}),
    "kl_cov, lopti": algorithm("kl_cov", lopti={"threshold": 0.5}),
    **{
        f"maspo, {kl}": algorithm("maspo", "seq-mean-token-mean", kl={"coefficient": 0.1, "estimator": kl})
        for kl in ("k1", "k2", "k3", "k3_k2")
    },
}


def whole_step(seed, lengths):
    generator = torch.Generator().manual_seed(seed)
    tokens = sum(lengths)
    sequence = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    old = -3 * torch.rand(tokens, generator=generator, dtype=torch.float64)
    noise = torch.randn(4, tokens, generator=generator, dtype=torch.float64)
    return TokenBatch(
        logprob=(old + 0.5 * noise[0]).clamp(max=0),
        old_logprob=old,
        rollout_logprob=old,
        advantage=torch.randn(len(lengths), generator=generator, dtype=torch.float64)[sequence],
        sequence=sequence,
        group=torch.zeros(len(lengths), dtype=torch.long),
        totals=Totals(tokens, sum(length > 0 for length in lengths)),
        reference_logprob=old + 0.3 * noise[1],
        entropy=noise[2].abs(),
        proxy_logprob=(old + 0.5 * noise[3]).clamp(max=0),
    )


def part_of(batch, rows):
    """The sequences `rows` of a batch, renumbered."""
    tokens = torch.cat([(batch.sequence == row).nonzero().squeeze(1) for row in rows])
    number = {row: index for index, row in enumerate(rows)}
    values = {
        field.name: getattr(batch, field.name)[tokens]
        for field in fields(batch)
        if field.name not in ("group", "totals", "sequence")
    }
    sequence = torch.tensor([number[int(row)] for row in batch.sequence[tokens]], dtype=torch.long)
    return TokenBatch(**values, sequence=sequence, group=batch.group[list(rows)], totals=batch.totals)


def observe_on_ranks(policies, batches):
    """What `observe` returns on each rank, with a reduction that waits for all of them."""
    barrier = threading.Barrier(len(policies), timeout=10)
    sent, results, failures = [None] * len(policies), [None] * len(policies), []

    def rank(index):
        def reduce(tensor, operation):
            sent[index] = tensor
            barrier.wait()
            reduced = OPERATIONS[operation](torch.stack(sent), 0)
            barrier.wait()
            return reduced

        try:
            results[index] = policies[index].observe(batches[index], reduce)
        except Exception as failure:
            failures.append(failure)
            barrier.abort()
            raise

    threads = [threading.Thread(target=rank, args=(index,)) for index in range(len(policies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not failures
    return results


def gradients(config, batch, ranks):
    """Gradients by logprob and entropy [2, N], and the losses, of all passes; `ranks` holds rows by rank and
    micro-batch."""
    policies = [build_policy_loss(config) for _ in ranks]
    for policy in policies:
        if config.adaptive_entropy.target is not None:  # as after a few steps: the entropy decides whether it applies
            policy.load_state_dict({"objective": {}, "entropy_bonus": {"coefficient": 0.002}})
    logprob, entropy = batch.logprob.clone().requires_grad_(), batch.entropy.clone().requires_grad_()
    live = replace(batch, logprob=logprob, entropy=entropy)
    total, observed = 0.0, []
    for number in range(len(policies[0].passes)):
        parts = [policy.passes[number] for policy in policies]
        steps = [None] * len(ranks)
        if parts[0].needs_step:
            whole = [part_of(batch, [row for micro in rank for row in micro]) for rank in ranks]
            steps = observe_on_ranks(parts, whole)
            observed += steps
        for part, step, rank in zip(parts, steps, ranks, strict=True):
            for micro in rank:
                loss = part(part_of(live, micro), step).loss
                loss.backward()
                total += loss.item()
    none = torch.zeros_like(logprob)
    return torch.stack([logprob.grad, none if entropy.grad is None else entropy.grad]), total, observed


@st.composite
def splits(draw):
    lengths = draw(st.lists(st.sampled_from([0, 1, 2, 5, 13]), min_size=2, max_size=8).filter(lambda n: sum(n) > 1))
    cuts = draw(st.lists(st.integers(0, 5), min_size=len(lengths), max_size=len(lengths)))
    order = draw(st.permutations(range(len(lengths))))
    micros = {cut: [row for row in order if cuts[row] == cut] for cut in cuts}
    ranks = [[], []]
    for cut, rows in micros.items():
        ranks[cut % 2].append(rows)
    return draw(st.integers(0, 2**31)), lengths, [rank for rank in ranks if rank]


@pytest.mark.parametrize("case", list(CASES))
@settings(max_examples=12, deadline=None, derandomize=True)
@given(splits())
@example((0, [5, 2, 13, 0, 1], [[[0, 1], [2]], [[3, 4]]]))
@example((2, [5, 2, 13, 0, 1], [[[4], [2, 0]], [[3], [1]]]))
def test_gradient_does_not_depend_on_the_split(case, split):
    seed, lengths, ranks = split
    batch = whole_step(seed, lengths)
    expected, total, _ = gradients(CASES[case], batch, [[list(range(len(lengths)))]])
    found, split_total, observed = gradients(CASES[case], batch, ranks)
    assert (found - expected).norm() <= 1e-10 * expected.norm()
    assert split_total == pytest.approx(total, rel=1e-10, abs=1e-12)
    assert all(step == observed[index - index % len(ranks)] for index, step in enumerate(observed))
