"""Losses and gradients equal to the papers' formulas, by numbers."""

import pytest
import torch
from token_cases import AGGREGATES, RESPONSES, TABLE, TOKENS, evaluate, token_batch

from maspo_rl.objectives import build
from maspo_rl.objectives.aggregation import aggregate

IDS = [f"{name}{parameters or ''}" for name, parameters, _ in TABLE]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("name", "parameters", "expected"), TABLE, ids=IDS)
def test_loss_and_gradient_of_each_token(name, parameters, expected, dtype):
    result, weights = evaluate(build(name, **parameters), token_batch(TOKENS, dtype=dtype))
    for index, pair in enumerate(expected):
        if pair is not None:
            assert result.loss[index].item() == pytest.approx(pair[0], abs=1e-5)
            assert weights[index].item() == pytest.approx(pair[1], abs=1e-5)


@pytest.mark.parametrize(("case", "expected"), list(zip(TABLE, AGGREGATES, strict=True)), ids=IDS)
def test_whole_batch(case, expected):
    name, parameters, _ = case
    advantages = [0.70710578, -0.70710578]
    tokens = [(q, r, a) for response, a in zip(RESPONSES, advantages, strict=True) for q, r in response]
    batch = token_batch(tokens, rows=[0, 0, 1, 1, 1])
    result, _ = evaluate(build(name, **parameters), batch)
    for mode, value in zip(("token-mean", "seq-mean-token-mean"), expected, strict=True):
        assert aggregate(result.loss, batch.sequence, batch.totals, mode).item() == pytest.approx(value, abs=1e-5)
