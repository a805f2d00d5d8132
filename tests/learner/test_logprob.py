"""Log-probs in blocks against the naive ones: all logits, `log_softmax`, autograd."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from maspo_rl.learner import logprob
from maspo_rl.learner.logprob import score_tokens

TOKENS, WIDTH, VOCABULARY, TEMPERATURE = 23, 8, 61, 0.7
Inputs = tuple[Tensor, Tensor, Tensor | None, Tensor]


def inputs(dtype: torch.dtype, *, bias: bool, spread: float = 1.0) -> Inputs:
    generator = torch.Generator().manual_seed(0)
    hidden = (spread * torch.randn(TOKENS, WIDTH, generator=generator, dtype=torch.float64)).to(dtype)
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator, dtype=torch.float64).to(dtype)
    shift = torch.randn(VOCABULARY, generator=generator, dtype=torch.float64).to(dtype) if bias else None
    target = torch.randint(VOCABULARY, (TOKENS,), generator=generator)
    live = [tensor.requires_grad_() if tensor is not None else None for tensor in (hidden, weight, shift)]
    return live[0], live[1], live[2], target  # type: ignore[return-value]


def naive(hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor) -> tuple[Tensor, Tensor]:
    logits = torch.nn.functional.linear(hidden, weight, bias)
    wide = logits if logits.dtype == torch.float64 else logits.float()
    logprobs = (wide / TEMPERATURE).log_softmax(-1)
    return logprobs.gather(1, target[:, None])[:, 0], -(logprobs.exp() * logprobs).sum(1)


def ours(*tensors: Tensor | None, entropy_gradient: bool = True) -> tuple[Tensor, ...]:
    return score_tokens(
        *tensors,  # type: ignore[arg-type]
        temperature=TEMPERATURE,
        entropy_gradient=entropy_gradient,
        proxy_kappa=None,
    )


def gradients(scores: tuple[Tensor, ...], tensors: Inputs, *, entropy: bool) -> tuple[Tensor, ...]:
    """By every input, of a sum that weighs each token and each score otherwise."""
    weights = torch.linspace(-1, 2, TOKENS, dtype=scores[0].dtype)
    loss = (weights * scores[0]).sum() + ((weights.flip(0) * scores[1]).sum() if entropy else 0)
    return torch.autograd.grad(loss, [tensor for tensor in tensors[:3] if tensor is not None])


@pytest.fixture(params=[(1 << 20, 2048, 1 << 26), (7 * 5, 5, 0), (64, 5, 12 * VOCABULARY), (1, 100, 1 << 26)])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once; blocks of five tokens and seven entries, none kept; half of the tokens kept; single columns."""
    elements, tokens, kept = request.param
    monkeypatch.setattr(logprob, "_BLOCK_ELEMENTS", {"cpu": elements})
    monkeypatch.setattr(logprob, "_CHUNK_TOKENS", {"cpu": tokens})
    monkeypatch.setattr(logprob, "KEPT_ELEMENTS", kept)


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("entropy", [True, False])
def test_scores_and_gradients_equal_the_naive_ones(bias: bool, entropy: bool) -> None:
    tensors = inputs(torch.float64, bias=bias)
    scores, expected = ours(*tensors, entropy_gradient=entropy), naive(*tensors)
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-12)
    assert scores[1].requires_grad == entropy
    pairs = zip(gradients(scores, tensors, entropy=entropy), gradients(expected, tensors, entropy=entropy), strict=True)
    for found, right in pairs:
        torch.testing.assert_close(found, right, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("sizes")
def test_a_second_backward_gives_the_same_gradient() -> None:
    tensors = inputs(torch.float64, bias=False)
    loss = ours(*tensors)[0].sum()
    first = torch.autograd.grad(loss, tensors[:2], retain_graph=True)  # type: ignore[arg-type]
    torch.testing.assert_close(torch.autograd.grad(loss, tensors[:2]), first, rtol=0, atol=1e-13)  # type: ignore[arg-type]


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sums_are_float32_whatever_the_weights_are(dtype: torch.dtype) -> None:
    """Against float64 on the same logits: rounded to bfloat16, log-probs would be off by 2**-9 of their size, as much
    as a policy moves in an update."""
    tensors = inputs(dtype, bias=False)
    logits = ((tensors[0] @ tensors[1].T).double() / TEMPERATURE).detach().requires_grad_()
    exact = logits.log_softmax(-1).gather(1, tensors[3][:, None])[:, 0]
    found, _ = ours(*tensors)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=2e-5)
    (exact_by_logits,) = torch.autograd.grad(exact.sum(), logits)
    by_weight, right = torch.autograd.grad(found.sum(), tensors[1]), exact_by_logits.T @ tensors[0].double()
    torch.testing.assert_close(
        by_weight[0].double(), right / TEMPERATURE, rtol=0, atol=0.1 if dtype is torch.bfloat16 else 1e-4
    )


def test_extreme_logits_give_finite_scores_and_gradients() -> None:
    tensors = inputs(torch.float32, bias=False, spread=1e4)
    scores = ours(*tensors)
    assert torch.isfinite(torch.stack(scores)).all()
    assert (scores[0] <= 0).all()
    assert (scores[1] >= -1e-6).all()
    assert all(torch.isfinite(gradient).all() for gradient in gradients(scores, tensors, entropy=True))
