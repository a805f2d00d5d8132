"""The learner's log-probs against the naive ones: full logits, one sequence at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_batch import batch_of
from transformers import Qwen3Config, Qwen3ForCausalLM

from maspo_rl.learner.attention import PACKED, register_packed
from maspo_rl.learner.micro_batch import collate
from maspo_rl.learner.policy import Policy

register_packed()
LENGTHS = [(3, 5), (4, 1), (2, 9), (6, 6)]
TEMPERATURE = 0.7


@pytest.fixture(scope="module")
def model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        tie_word_embeddings=True,
        attn_implementation=PACKED,
    )
    return Qwen3ForCausalLM(config).double()


def full_logits(model: Qwen3ForCausalLM, ids: torch.Tensor) -> torch.Tensor:
    decoder = model.get_decoder()
    decoder.set_attn_implementation("sdpa")
    hidden = decoder(ids).last_hidden_state[0]
    decoder.set_attn_implementation(PACKED)
    return hidden @ model.get_output_embeddings().weight.T


def naive(model: Qwen3ForCausalLM, row: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probs and entropies of a row's response tokens from the full logits of that row alone."""
    prompt, response = LENGTHS[row]
    ids = torch.tensor([[*range(prompt), *range(response)]])
    logits = full_logits(model, ids)[prompt - 1 : -1] / TEMPERATURE
    distribution = torch.distributions.Categorical(logits=logits)
    return distribution.log_prob(ids[0, prompt:]), distribution.entropy()


def test_logprobs_entropy_and_gradient_equal_the_naive_ones(model: Qwen3ForCausalLM) -> None:
    micro = collate(batch_of(LENGTHS), np.arange(4), 0, torch.device("cpu"), torch.float64)
    model.zero_grad()
    logprob, entropy = Policy(model, TEMPERATURE)(*micro.inputs, True, None)
    (logprob.sum() + entropy.sum()).backward()
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    expected = [naive(model, row) for row in range(4)]
    torch.testing.assert_close(logprob, torch.cat([pair[0] for pair in expected]), rtol=0, atol=1e-12)
    torch.testing.assert_close(entropy, torch.cat([pair[1] for pair in expected]), rtol=0, atol=1e-12)
    sum(pair[0].sum() + pair[1].sum() for pair in expected).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-10, atol=1e-12)


def test_flat_tensors_know_their_row(model: Qwen3ForCausalLM) -> None:
    micro = collate(batch_of(LENGTHS), np.array([2, 0]), 0, torch.device("cpu"), torch.float64)
    assert micro.sequence.tolist() == [0] * 9 + [1] * 5
    assert micro.advantage.tolist() == [2.0] * 9 + [0.0] * 5
    assert micro.target.tolist() == [*range(9), *range(5)]


def test_an_empty_micro_batch_has_no_tokens_and_a_gradient_of_zero(model: Qwen3ForCausalLM) -> None:
    micro = collate(batch_of(LENGTHS), np.empty(0, np.int64), 0, torch.device("cpu"), torch.float64)
    model.zero_grad()
    logprob, _ = Policy(model, 1.0)(*micro.inputs, False, None)
    assert len(logprob) == 0
    logprob.sum().backward()
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in model.parameters())


def test_the_proxy_is_the_policy_without_its_improbable_tokens(model: Qwen3ForCausalLM) -> None:
    kappa = 0.5
    micro = collate(batch_of(LENGTHS), np.arange(4), 0, torch.device("cpu"), torch.float64)
    *_, proxy = Policy(model, TEMPERATURE)(*micro.inputs, False, kappa)
    expected = []
    for prompt, response in LENGTHS:
        ids = torch.tensor([[*range(prompt), *range(response)]])
        probabilities = (full_logits(model, ids)[prompt - 1 : -1] / TEMPERATURE).softmax(-1)
        for row, token in zip(probabilities, ids[0, prompt:], strict=True):
            kept = [p for p in row.tolist() if p >= kappa * row.max().item()]
            expected.append(row[token].item() / sum(kept) if row[token].item() in kept else 0.0)
    assert 0 < sum(p > 0 for p in expected) < len(expected)
    assert proxy.exp().tolist() == pytest.approx(expected, abs=1e-6)
