"""From token losses to one number."""

import pytest
import torch
from token_cases import evaluate, token_batch

from maspo_rl.config.errors import InputError
from maspo_rl.objectives import build
from maspo_rl.objectives.aggregation import MODES, NORMALISED, aggregate, check_mode
from maspo_rl.types import Totals

LOSS, SEQUENCE, TOTALS = [1.0, 2.0, 3.0, 4.0, 5.0], [0, 0, 1, 1, 1], Totals(5, 2)


@pytest.mark.parametrize(
    ("mode", "constant", "expected"),
    [
        ("token-mean", None, 3.0),
        ("token-sum", None, 15.0),
        ("token-sum-norm", 3.0, 5.0),
        ("seq-mean-token-sum", None, 7.5),
        ("seq-mean-token-mean", None, 2.75),
        ("seq-mean-token-sum-norm", 3.0, 2.5),
        ("seq-mean-token-sum-norm", 3000.0, 0.0025),  # Dr.GRPO
        ("seq-sum-token-mean", None, 5.5),  # DCPO's OTM
    ],
)
def test_modes(mode, constant, expected):
    total = aggregate(torch.tensor(LOSS), torch.tensor(SEQUENCE), TOTALS, mode, constant)
    assert total.item() == pytest.approx(expected)


def test_rows_without_tokens_do_not_count():
    total = aggregate(torch.tensor(LOSS), torch.tensor([0, 0, 3, 3, 3]), TOTALS, "seq-mean-token-mean")
    assert total.item() == pytest.approx(2.75)


def test_token_mean_is_over_the_whole_step():
    # the mean of the micro-batches' own means would be (1.5 + 4) / 2
    parts = [
        aggregate(torch.tensor(LOSS[:2]), torch.tensor([0, 0]), TOTALS, "token-mean"),
        aggregate(torch.tensor(LOSS[2:]), torch.tensor([0, 0, 0]), TOTALS, "token-mean"),
    ]
    assert sum(parts).item() == pytest.approx(3.0)


@pytest.mark.parametrize("mode", MODES)
def test_constant_goes_with_the_modes_that_divide_by_it(mode):
    wrong = None if mode in NORMALISED else 3.0
    with pytest.raises(InputError, match=r"aggregation\.constant"):
        check_mode(mode, wrong)


def test_unknown_mode():
    with pytest.raises(InputError, match="token-mean"):
        check_mode("token_mean", None)


def test_float32_sums_a_million_tokens():
    generator = torch.Generator().manual_seed(0)
    loss = torch.rand(1_000_000, generator=generator)
    total = aggregate(loss, torch.zeros(len(loss), dtype=torch.long), Totals(len(loss), 1), "token-mean")
    assert total.dtype == torch.float32
    assert total.item() == pytest.approx(loss.double().mean().item(), rel=1e-6)


def test_float32_stays_float32():
    result, _ = evaluate(build("maspo"), token_batch([(0.5, 1.1, 1.0)], dtype=torch.float32))
    assert result.loss.dtype == result.slope.dtype == torch.float32
