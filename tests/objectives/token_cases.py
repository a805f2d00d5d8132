"""Tokens with known losses and gradient weights, and batches made of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from maspo_rl.objectives.base import Objective, TokenLoss
from maspo_rl.types import Reduce, TokenBatch, Totals

TOKENS = [  # q, r, A
    (0.5, 1.1, 1.0),
    (0.2, 1.5, 1.0),
    (0.2, 0.5, -1.0),
    (0.05, 4.0, -1.0),
    (0.2, 0.5, 1.0),
    (0.9, 1.05, 0.5),
    (0.001, 3.0, 2.0),
    (0.6, 0.7, -2.0),
]

# objective, parameters: loss and gradient weight of each of the tokens above, from the papers' formulas, by a program
# that shares nothing with this one. None: the ratio lies on a bound, where the gradient is a convention.
TABLE: list[tuple[str, dict[str, float], list[tuple[float, float] | None]]] = [
    (
        "grpo",
        {},
        [(-1.1, 1.1), (-1.2, 0), (0.8, 0), (4, 4), (-0.5, 0.5), (-0.525, 1.05), (-2.4, 0), (1.6, 0)],
    ),
    (
        "ppo",
        {"dual_clip": 3.0},
        [(-1.1, 1.1), (-1.2, 0), (0.8, 0), (3, 0), (-0.5, 0.5), (-0.525, 1.05), (-2.4, 0), (1.6, 0)],
    ),
    (
        "dapo",
        {},
        [(-1.1, 1.1), (-1.28, 0), (0.8, 0), (4, 4), (-0.5, 0.5), (-0.525, 1.05), (-2.56, 0), (1.6, 0)],
    ),
    (
        "maspo",
        {},
        [
            (-1.096585, 1.096585),
            (-1.434198, 1.434198),
            (0.475382, 0.475382),
            (4, 4),
            (-0.5, 0.5),
            (-0.524402, 1.048804),
            (-5.833099, 2.91655),
            (1.348857, 0.674428),
        ],
    ),
    (
        "maspo",
        {"alpha": 0.5},
        [
            (-1.097411, 1.097411),
            (-1.465066, 1.465066),
            (0.486913, 0.486913),
            (4, 4),
            (-0.5, 0.5),
            (-0.524427, 1.048854),
            (-5.894145, 2.947073),
            (1.358166, 0.679083),
        ],
    ),
    (
        "dcpo",
        {},
        [(-1.1, 1.1), (-1.5, 1.5), None, (4, 4), (-0.5, 0.5), (-0.525, 1.05), (-6, 3), (1.4, 0.7)],
    ),
    (
        "dcpo",
        {"epsilon_low": 0.2, "epsilon_high": 0.28},
        [(-1.1, 1.1), (-1.5, 1.5), None, (4, 4), (-0.5, 0.5), (-0.525, 1.05), (-6, 3), (1.4, 0.7)],
    ),
    (
        "sapo",
        {},
        [
            (-2.099917, 1.09725),
            (-2.489837, 1.410022),
            (1.415938, 0.46707),
            (3.652986, 0.630445),
            (-1.510163, 0.470007),
            (-1.024995, 1.049344),
            (-7.046377, 1.259923),
            (3.214436, 0.68292),
        ],
    ),
    (
        "gppo",
        {},
        [(-1.1, 1.1), (-1.28, 1.28), (0.8, 0.8), (4, 4), (-0.5, 0.5), (-0.525, 1.05), (-2.56, 1.28), (1.6, 0.8)],
    ),
    (
        "ce_gppo",
        {},
        [(-1.1, 1.1), (-1.2, 1.2), (0.4, 0.4), (4, 4), (-0.5, 0.5), (-0.525, 1.05), (-2.4, 1.2), (0.8, 0.4)],
    ),
    (
        "ce_gppo",
        {"beta_low": 0.75},
        [(-1.1, 1.1), (-1.2, 1.2), (0.6, 0.6), (4, 4), (-0.5, 0.5), (-0.525, 1.05), (-2.4, 1.2), (1.2, 0.6)],
    ),
    (
        "aspo",
        {},
        [
            (-0.909091, 0.909091),
            (-0.833333, 0),
            (0.8, 0),
            (-4.828314, 3),
            (-2, 2),
            (-0.47619, 0.952381),
            (-1.666667, 0),
            (1.6, 0),
        ],
    ),
    (
        "cispo",
        {},
        [
            (0.657621, 1.1),
            (1.444767, 1.2),
            (-1.151293, 0.5),
            (-1.931325, 1.2),
            (1.151293, 0.5),
            (0.029699, 1.05),
            (13.941943, 1.2),
            (-1.214501, 0.7),
        ],
    ),
    (
        "dgpo",
        {},
        [
            (-1.1, 1.1),
            (-1.341641, 1.341641),
            (0.3125, 0.3125),
            (4, 4),
            (-0.5, 0.5),
            (-0.525, 1.05),
            (-3.794733, 1.897367),
            (1.225, 0.6125),
        ],
    ),
    (
        "dgpo",
        {"n": 2.0},
        [
            (-1.1, 1.1),
            (-1.341641, 1.341641),
            (0.195313, 0.195313),
            (4, 4),
            (-0.5, 0.5),
            (-0.525, 1.05),
            (-3.794733, 1.897367),
            (1.071875, 0.535938),
        ],
    ),
    (
        "raft",
        {},
        [
            (0.597837, 1),
            (1.203973, 1),
            (-2.302585, 1),
            (-1.609438, 1),
            (2.302585, 1),
            (0.028285, 1),
            (11.618286, 1),
            (-1.735001, 1),
        ],
    ),
    (
        "kl_cov",
        {"fraction": 1.0},
        [
            (-1.00469, 0.1),
            (-1.094535, 0.5),
            (1.193147, -0.5),
            (5.386294, 5),
            (0.193147, 1.5),
            (-0.47621, -0.95),
            (-4.901388, 2.5),
            (1.756675, 0.2),
        ],
    ),
    (
        "kl_cov",
        {"fraction": 1.0, "coefficient": 0.1},
        [
            (-1.090469, 1),
            (-1.459453, 1.4),
            (0.569315, 0.4),
            (4.138629, 4.1),
            (-0.430685, 0.6),
            (-0.520121, 0.85),
            (-5.890139, 2.95),
            (1.435667, 0.65),
        ],
    ),
]

# The same objectives on two responses of one group, rewards 1 and 0: (q, r) of each token, then token-mean and
# seq-mean-token-mean of the whole batch.
RESPONSES = [[(0.5, 1.1), (0.2, 1.5)], [(0.2, 0.45), (0.6, 0.7), (0.05, 4.0)]]
AGGREGATES = [
    (0.46669, 0.25338),
    (0.325269, 0.135529),
    (0.455376, 0.239237),
    (0.363508, 0.153865),
    (0.361296, 0.150123),
    (0.367695, 0.153206),
    (0.367695, 0.153206),
    (0.2885, -0.030037),
    (0.455376, 0.239237),
    (0.353553, 0.159099),
    (0.410121, 0.206239),
    (-0.702968, -0.688479),
    (-0.214927, -0.055221),
    (0.342803, 0.141794),
    (0.316314, 0.11972),
    (-0.436012, -0.257171),
    (0.969074, 0.696087),
    (0.421469, 0.202191),
]


def alone(tensor: torch.Tensor, operation: str) -> torch.Tensor:
    """Reduce of a single rank."""
    return tensor


def token_batch(
    tokens: Sequence[tuple[float, float, float]],
    rows: Sequence[int] | None = None,
    dtype: torch.dtype = torch.float64,
) -> TokenBatch:
    """A whole optimiser step of tokens (q, r, A); all in one sequence, unless `rows` says otherwise."""
    old, ratio, advantage = torch.tensor(tokens, dtype=torch.float64).unbind(1)
    sequence = torch.tensor(rows if rows is not None else [0] * len(tokens))
    sequences = len(sequence.unique())
    return TokenBatch(
        logprob=(old.log() + ratio.log()).to(dtype).requires_grad_(),
        old_logprob=old.log().to(dtype),
        rollout_logprob=old.log().to(dtype),
        advantage=advantage.to(dtype),
        sequence=sequence,
        group=torch.zeros(int(sequence.max()) + 1, dtype=torch.long),
        totals=Totals(len(tokens), sequences),
    )


def evaluate(objective: Objective, batch: TokenBatch, reduce: Reduce = alone) -> tuple[TokenLoss, torch.Tensor]:
    """The loss, and by autograd the gradient weights -(d loss / d logprob) / A."""
    with torch.no_grad():
        step = objective.observe(batch, reduce) if objective.needs_step else None
    result = objective.token_loss(batch, step)
    (gradient,) = torch.autograd.grad(result.loss.sum(), batch.logprob)
    return result, -gradient / batch.advantage
