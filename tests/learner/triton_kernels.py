"""The GPU's kernels against formulas for all logits at once: in Triton's interpreter on a CPU, or on a GPU without it.

Not collected by itself: `test_logprob_triton.py` runs it both ways.
"""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor

from maspo_rl.learner import logprob, logprob_triton
from maspo_rl.learner.logprob import score_tokens

WIDTH, VOCABULARY, TEMPERATURE = 8, 61, 0.7
DEVICE = "cpu" if os.environ["TRITON_INTERPRET"] == "1" else "cuda"
TARGET = torch.tensor([0, 6, 7, 13, 31, 32, 3, 55, 56, 59, 60], device=DEVICE)
"""First and last entries of blocks of 7, 8 and 61, and of tiles of 4 and 64."""
Inputs = tuple[Tensor, Tensor, Tensor | None]


@pytest.fixture(autouse=True)
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logprob, "chunk_type", lambda _: logprob_triton.TritonChunk)


@pytest.fixture(params=[(1 << 20, 1, 2048, 1 << 26, 4096), (7 * 5, 1, 5, 0, 4), (64, 8, 5, 6 * VOCABULARY, 8)])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once; five tokens by seven entries in two tiles, none kept; blocks of 8 and 16, six tokens' kept."""
    elements, step, tokens, kept, tile = request.param
    monkeypatch.setattr(logprob, "_BLOCK_ELEMENTS", {DEVICE: elements})
    monkeypatch.setattr(logprob, "_WIDTH_STEP", {DEVICE: step})
    monkeypatch.setattr(logprob, "_CHUNK_TOKENS", {DEVICE: tokens})
    monkeypatch.setattr(logprob, "KEPT_ELEMENTS", kept)
    monkeypatch.setattr(logprob_triton, "_TILE", tile)


def inputs(dtype: torch.dtype, *, bias: bool, spread: float = 1.0, tokens: int = len(TARGET)) -> Inputs:
    generator = torch.Generator().manual_seed(0)
    hidden = spread * torch.randn(tokens, WIDTH, generator=generator, dtype=torch.float64)
    weight = torch.randn(VOCABULARY, WIDTH, generator=generator, dtype=torch.float64)
    shift = torch.randn(VOCABULARY, generator=generator, dtype=torch.float64)
    hidden, weight, shift = (tensor.to(DEVICE, dtype).requires_grad_() for tensor in (hidden, weight, shift))
    return hidden, weight, shift if bias else None


def ours(tensors: Inputs, *, entropy: bool = True, kappa: float | None = None) -> tuple[Tensor, ...]:
    target = TARGET[: len(tensors[0])]
    return score_tokens(*tensors, target, temperature=TEMPERATURE, entropy_gradient=entropy, proxy_kappa=kappa)


def scores_of(logits: Tensor) -> tuple[Tensor, Tensor]:
    logprobs = (logits / TEMPERATURE).log_softmax(-1)
    return logprobs.gather(1, TARGET[:, None])[:, 0], -(logprobs.exp() * logprobs).sum(1)


def naive(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    return scores_of(torch.nn.functional.linear(hidden, weight, bias))


def gradients(scores: tuple[Tensor, ...], tensors: Inputs, *, entropy: bool) -> tuple[Tensor, ...]:
    """By every input, of a sum that weighs each token and each score otherwise."""
    weights = torch.linspace(-1, 2, len(TARGET), dtype=scores[0].dtype, device=DEVICE)
    loss = (weights * scores[0]).sum() + ((weights.flip(0) * scores[1]).sum() if entropy else 0)
    return torch.autograd.grad(loss, [tensor for tensor in tensors if tensor is not None])


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize(("bias", "entropy"), [(True, True), (False, False)])
def test_scores_and_gradients_equal_the_naive_ones(bias: bool, entropy: bool) -> None:
    tensors = inputs(torch.float64, bias=bias)
    scores, expected = ours(tensors, entropy=entropy), naive(*tensors)
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-12)
    pairs = zip(gradients(scores, tensors, entropy=entropy), gradients(expected, tensors, entropy=entropy), strict=True)
    for found, right in pairs:
        torch.testing.assert_close(found, right, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("sizes")
def test_bfloat16_rounds_the_product_and_the_gradient_and_nothing_between() -> None:
    """Sums in bfloat16 would be off by a hundred times what is allowed here to the scores."""
    tensors = inputs(torch.bfloat16, bias=True)
    product = (tensors[0] @ tensors[1].T).double().detach()
    logits = (product + tensors[2].double()).detach().requires_grad_()  # type: ignore[union-attr]
    found, right = ours(tensors), scores_of(logits)
    assert all(score.dtype == torch.float32 for score in found)
    torch.testing.assert_close(tuple(score.double() for score in found), right, rtol=0, atol=2e-5)
    (by_logits,) = torch.autograd.grad(right[0].sum() + right[1].sum(), logits)
    by_hidden, by_weight, by_bias = torch.autograd.grad(found[0].sum() + found[1].sum(), tensors)
    hidden, weight = (tensor.detach().double() for tensor in tensors[:2])
    # 2**-8 of each term before the products, as the interpreter cuts off where a GPU rounds, and 2**-9 after a product
    # and after its addition in each of three chunks.
    terms = by_logits.abs() @ weight.abs(), by_logits.abs().T @ hidden.abs(), by_logits.abs().sum(0)
    exact = by_logits @ weight, by_logits.T @ hidden, by_logits.sum(0)
    for gradient, value, most in zip((by_hidden, by_weight, by_bias), exact, terms, strict=True):
        assert gradient.dtype == torch.bfloat16
        assert ((gradient.double() - value).abs() <= 2**-6 * most + 1e-6).all()


def test_extreme_logits_give_finite_scores_and_gradients() -> None:
    tensors = inputs(torch.float32, bias=True, spread=1e4)
    scores = ours(tensors)
    assert torch.isfinite(torch.stack(scores)).all()
    assert (scores[0] <= 0).all()
    assert (scores[1] >= -1e-6).all()
    assert all(torch.isfinite(gradient).all() for gradient in gradients(scores, tensors, entropy=True))


def test_a_token_whose_hidden_state_is_no_number_has_none_for_scores_and_alone() -> None:
    hidden, weight, _ = inputs(torch.float32, bias=False)
    with torch.no_grad():
        hidden[3, 2] = torch.nan
    for score in ours((hidden, weight, None)):
        assert score.isnan().nonzero().tolist() == [[3]]


@pytest.mark.usefixtures("sizes")
def test_the_proxy_is_the_policy_of_likely_tokens() -> None:
    kappa = 0.05
    tensors = inputs(torch.float64, bias=True)
    probability = (torch.nn.functional.linear(*tensors) / TEMPERATURE).softmax(-1)
    likely = torch.where(probability >= kappa * probability.amax(1, keepdim=True), probability, 0.0)
    expected = (likely / likely.sum(1, keepdim=True)).log().gather(1, TARGET[:, None])[:, 0]
    assert expected.isinf().any()
    torch.testing.assert_close(ours(tensors, kappa=kappa)[2], expected.detach(), rtol=0, atol=1e-12)


def test_no_tokens_have_no_scores_and_gradients_of_zero() -> None:
    tensors = inputs(torch.float32, bias=True, tokens=0)
    scores = ours(tensors)
    assert [score.shape for score in scores] == [(0,), (0,)]
    for gradient in torch.autograd.grad(scores[0].sum(), tensors):
        assert not gradient.any()
