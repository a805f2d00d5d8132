"""Advantages worked out by hand."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maspo_rl.advantages import build, catalogue
from maspo_rl.config.errors import InputError
from maspo_rl.types import RewardBatch


def reward_batch(*groups, lengths=None, prompts=None):
    rewards = [float(reward) for group in groups for reward in group]
    index = [number for number, group in enumerate(groups) for _ in group]
    return RewardBatch(
        reward=torch.tensor(rewards, dtype=torch.float64),
        correct=torch.tensor([reward > 0 for reward in rewards], dtype=torch.bool),
        length=torch.tensor(lengths if lengths is not None else [1] * len(rewards)),
        group=torch.tensor(index, dtype=torch.long),
        prompt_ids=tuple(prompts or (str(number) for number in range(len(groups)))),
        greedy_reward=torch.tensor([0.5] * len(groups)),
    )


ONE_RIGHT, TWO_RIGHT, SIGNED = [1, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0], [1, -1, -1, -1]


@pytest.mark.parametrize(
    ("name", "parameters", "rewards", "expected"),
    [
        ("grpo", {}, ONE_RIGHT, [1.499997] + [-0.499999] * 3),
        ("grpo", {"unbiased": False}, ONE_RIGHT, [1.732047] + [-0.577349] * 3),
        ("grpo", {}, TWO_RIGHT, [1.620182] * 2 + [-0.540061] * 6),
        ("grpo", {}, [1, 1, -1], [0.57735, 0.57735, -1.1547]),
        ("grpo", {}, [1, 0], [0.70710578, -0.70710578]),
        ("grpo", {}, [0.3], [0.3]),
        ("grpo", {}, [0.1, 0.1, 0.1], [0, 0, 0]),
        ("dr_grpo", {}, ONE_RIGHT, [0.75] + [-0.25] * 3),
        ("dr_grpo", {}, [0.3], [0.3]),
        ("rloo", {}, ONE_RIGHT, [1] + [-1 / 3] * 3),
        ("rloo", {}, TWO_RIGHT, [0.857143] * 2 + [-0.285714] * 6),
        ("rloo", {}, [0.3], [0.3]),
        ("raft", {}, SIGNED, [1, 0, 0, 0]),
        ("raft", {}, [-1, -1], [0, 0]),
        ("raft", {"select": "best"}, SIGNED, [1, 0, 0, 0]),
        ("raft", {"select": "best"}, [1, 1, 0], [1, 1, 0]),
        ("reinforce", {}, SIGNED, SIGNED),
        ("reinforce_rej", {}, SIGNED, SIGNED),
        ("reinforce_rej", {}, [1, 1, 1, 1], [0] * 4),
        ("reinforce_rej", {}, [-1] * 4, [0] * 4),
        ("remax", {}, [1, 0], [0.5, -0.5]),
        ("gpg", {}, ONE_RIGHT, [3, -1, -1, -1]),  # 4 responses / 1 reward that is not 0
        ("gpg", {}, [0, 0], [0, 0]),
        ("pass_k", {}, ONE_RIGHT, [1.999996, 0, 0, 0]),  # 1 / std 0.5
        ("pass_k", {}, [1, 1, 0], [0, 0, 0]),
        ("pass_k", {}, [1], [0]),
    ],
)
def test_one_group(name, parameters, rewards, expected):
    assert build(name, **parameters)(reward_batch(rewards)).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["reinforce_plus_plus", "reinforce_plus_plus_baseline"])
@pytest.mark.parametrize(("unbiased", "expected"), [(True, [1.095445, -0.730297]), (False, [1.224745, -0.816497])])
def test_whitening_over_tokens(name, unbiased, expected):
    # two responses of 2 and 3 tokens: 1 1 0 0 0, or .5 .5 -.5 -.5 -.5
    advantage = build(name, unbiased=unbiased)(reward_batch([1, 0], lengths=[2, 3]))
    assert advantage.tolist() == pytest.approx(expected, abs=1e-6)


def test_opo_weighs_the_baseline_by_length():
    # (3 * 1 + 1 * 0) / 4 tokens
    assert build("opo")(reward_batch([1, 0], lengths=[3, 1])).tolist() == pytest.approx([0.25, -0.75])


VISITS = [[1, 0, 0, 0], [1, 1, 0, 1], [0, 0, 1, 0], [1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("unbiased", "expected"),
    [
        (
            False,
            [
                [1.732051] + [-0.577350] * 3,
                [0.788675, 0.788675, -1.366025, 0.788675],
                [-0.666618, -0.666618, 1.366161, -0.666618],
                [0.220479] * 4,
            ],
        ),
        (
            True,
            [
                [1.5] + [-0.5] * 3,
                [0.697214, 0.697214, -1.197214, 0.697214],
                [-0.584593, -0.584593, 1.203526, -0.584593],
                [0.202073] * 4,
            ],
        ),
    ],
)
def test_dcpo_remembers_visits_also_through_a_checkpoint(unbiased, expected):
    estimator = build("dcpo", unbiased=unbiased)
    for rewards, advantages in zip(VISITS, expected, strict=True):
        found = estimator(reward_batch([0, 1], rewards, prompts=["other", "this"]))
        assert found[2:].tolist() == pytest.approx(advantages, abs=1e-6)
        state = json.loads(json.dumps(estimator.state_dict()))
        estimator = build("dcpo", unbiased=unbiased)
        estimator.load_state_dict(state)


finite = st.floats(-1e6, 1e6, allow_nan=False, width=32)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.one_of(st.sampled_from([0.0, 1.0, 0.1]), finite), min_size=1, max_size=6), min_size=1))
def test_every_estimator_is_finite_and_equal_rewards_teach_no_difference(groups):
    lengths = [index % 4 for index in range(sum(map(len, groups)))]
    for name in catalogue():
        advantage = build(name)(reward_batch(*groups, lengths=lengths))
        assert advantage.dtype == torch.float32
        assert advantage.isfinite().all()


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo", "opo", "gpg", "reinforce_plus_plus_baseline", "pass_k"])
def test_a_uniform_group_has_no_advantage(name):
    assert build(name)(reward_batch([0.1] * 7, [0.7] * 7)).tolist() == [0.0] * 14


def test_unknown_names_get_the_nearest():
    with pytest.raises(InputError, match="did you mean 'rloo'"):
        build("rlo")
    with pytest.raises(InputError, match="did you mean 'unbiased'"):
        build("grpo", unbiassed=True)


def test_state_of_another_estimator_is_refused():
    with pytest.raises(ValueError, match="keeps no state"):
        build("grpo").load_state_dict({"visits": {}})
