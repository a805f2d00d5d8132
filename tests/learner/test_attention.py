"""Packed attention against a model's own, one whole sequence at a time."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, PretrainedConfig, Qwen2Config, Qwen3Config

from maspo_rl.learner import attention
from maspo_rl.learner.attention import PACKED, Buckets, Piece, VariableLength, register_packed
from maspo_rl.learner.batch import SequenceBatch, plan_updates
from maspo_rl.learner.layers import keep_inputs_alone
from maspo_rl.learner.micro_batch import MicroBatch, collate
from maspo_rl.learner.policy import Policy
from maspo_rl.types import Group, Prompt, Rollout

register_packed()
CPU = torch.device("cpu")
VOCABULARY = 40
FLOAT32_NORMS = 1e-5
"""Of gradients near 1: the models normalise in float32 whatever the format is."""
SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
MODELS = {
    "llama": LlamaConfig(**SMALL, **HEADS),
    "qwen2": Qwen2Config(**SMALL, **HEADS, tie_word_embeddings=True),
    "qwen3": Qwen3Config(**SMALL, **HEADS, head_dim=16),
}
# (prompt tokens, tokens of each response)
Shape = list[tuple[int, list[int]]]
SHAPE: Shape = [(3, [5, 1, 9, 80]), (70, [4]), (66, [1, 3, 40]), (5, [90]), (2, [1]), (1, [2, 2])]
shapes = st.lists(
    st.tuples(st.integers(1, 9), st.lists(st.integers(1, 12), min_size=1, max_size=4)), min_size=1, max_size=4
)


def batch_of(shape: Shape) -> SequenceBatch:
    """A group of random tokens for each prompt."""
    random = np.random.default_rng(0)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(random.integers(0, VOCABULARY, count).tolist())

    groups = [
        Group(
            Prompt(str(number), tokens(prompt), "", "", ""),
            tuple(Rollout(str(number), 0, tokens(n), (-1.0,) * n, "", "stop", 0, 0) for n in responses),
            (),
            (),
        )
        for number, (prompt, responses) in enumerate(shape)
    ]
    return SequenceBatch.build(groups, [1.0] * sum(len(responses) for _, responses in shape))


def built(config: PretrainedConfig, implementation: str, dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    """A model; the packed one with all that the learner changes in it."""
    torch.manual_seed(0)
    # A model writes into its description how it attends.
    model = AutoModelForCausalLM.from_config(deepcopy(config), attn_implementation=implementation, dtype=dtype)
    if implementation == PACKED:
        keep_inputs_alone(model)
    return model


def all_rows(batch: SequenceBatch, dtype: torch.dtype) -> MicroBatch:
    return collate(batch, np.arange(len(batch.group)), 0, CPU, dtype)


def one_at_a_time(model: torch.nn.Module, batch: SequenceBatch) -> Tensor:
    """Log-probs of all response tokens by transformers' own code."""
    found = []
    for row, prompt in enumerate(batch.prompt_length):
        ids = torch.from_numpy(batch.token_ids[batch.start[row] : batch.start[row + 1]])[None]
        logprob = model(ids).logits[0, prompt - 1 : -1].log_softmax(-1)
        found.append(logprob.gather(1, ids[0, prompt:, None])[:, 0])
    return torch.cat(found)


def gradients(model: torch.nn.Module, logprob: Tensor) -> list[Tensor]:
    """Of a sum that weighs each token otherwise."""
    model.zero_grad()
    (logprob * torch.linspace(-1, 2, len(logprob), dtype=logprob.dtype)).sum().backward()
    return [parameter.grad for parameter in model.parameters()]


@pytest.fixture(params=["fused", "short"])
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "SHORT_KEYS", 0 if request.param == "fused" else 1000)


@pytest.mark.usefixtures("_kernel")
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("kind", list(MODELS))
def test_logprobs_and_gradients_are_those_of_one_sequence_at_a_time(kind: str, checkpointing: bool) -> None:
    batch = batch_of(SHAPE)
    own, packed = built(MODELS[kind], "sdpa"), built(MODELS[kind], PACKED)
    if checkpointing:
        packed.gradient_checkpointing_enable({"use_reentrant": False})
        packed.train()
    expected = one_at_a_time(own, batch)
    found, _ = Policy(packed, 1.0)(*all_rows(batch, torch.float64).inputs, False, None)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    for ours, theirs in zip(gradients(packed, found), gradients(own, expected), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=FLOAT32_NORMS, atol=FLOAT32_NORMS)


@settings(deadline=None, max_examples=25)
@given(shapes, st.integers(1, 3), st.integers(1, 3), st.integers(1, 60))
def test_the_gradient_is_the_same_for_every_split(shape: Shape, updates: int, ranks: int, budget: int) -> None:
    """Into ranks and micro-batches, within a group or not."""
    model = built(MODELS["llama"], PACKED)
    policy, batch = Policy(model, 1.0), batch_of(shape)
    whole = policy(*all_rows(batch, torch.float64).inputs, False, None)[0]
    expected = gradients(model, whole)
    bounds = batch.response_start
    weights = torch.linspace(-1, 2, len(whole), dtype=whole.dtype)
    model.zero_grad()
    for update in plan_updates(batch, updates, ranks, budget):
        for rows in (rows for share in update.micro_batches for rows in share):
            part = policy(*collate(batch, rows, 0, CPU, torch.float64).inputs, False, None)[0]
            own = torch.cat([weights[bounds[row] : bounds[row + 1]] for row in rows] or [weights[:0]])
            (part * own).sum().backward()
    for parameter, right in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, right, rtol=FLOAT32_NORMS, atol=FLOAT32_NORMS)


def test_bfloat16_is_as_near_to_the_exact_gradient_as_one_sequence_at_a_time_is() -> None:
    """Of the same weights: within 1.2 times the distance that the model's own bfloat16 pass has, over all weights."""
    batch, distance = batch_of(SHAPE), {}
    exact = built(MODELS["qwen3"], "sdpa", torch.bfloat16).double()
    right = gradients(exact, one_at_a_time(exact, batch))
    own, packed = (built(MODELS["qwen3"], name, torch.bfloat16) for name in ("eager", PACKED))
    logprobs = {
        "own": (own, one_at_a_time(own, batch).float()),
        "packed": (packed, Policy(packed, 1.0)(*all_rows(batch, torch.bfloat16).inputs, False, None)[0]),
    }
    for name, (model, logprob) in logprobs.items():
        found = gradients(model, logprob)
        distance[name] = sum(((a.double() - b) ** 2).sum().item() for a, b in zip(found, right, strict=True))
    assert distance["packed"] <= 1.2**2 * distance["own"]


@given(shapes)
def test_a_prompt_is_there_once_and_nothing_is_padded(shape: Shape) -> None:
    micro = all_rows(batch_of(shape), torch.float64)
    # Of each response, the last token is only a target.
    assert len(micro.token_ids) == sum(prompt + sum(n - 1 for n in responses) for prompt, responses in shape)
    assert len(micro.target) == sum(n for _, responses in shape for n in responses)


def by_the_book(
    query: Tensor, key: Tensor, value: Tensor, query_bounds: Tensor, key_bounds: Tensor, most_queries: int,
    most_keys: int, *, scale: float, window_size: tuple[int, int], enable_gqa: bool,
) -> Tensor:  # fmt: skip
    """`torch.nn.attention.varlen.varlen_attn` as its documentation has it: sequence after sequence, causal from the
    last query and key backwards."""
    assert window_size == (-1, 0)
    assert query_bounds.dtype == key_bounds.dtype == torch.int32
    lengths = [bounds.diff().max().item() for bounds in (query_bounds, key_bounds)]
    assert lengths == [most_queries, most_keys]
    results = []
    for (q0, q1), (k0, k1) in zip(
        query_bounds.unfold(0, 2, 1).tolist(), key_bounds.unfold(0, 2, 1).tolist(), strict=True
    ):
        q, k, v = (tensor.transpose(0, 1) for tensor in (query[q0:q1], key[k0:k1], value[k0:k1]))
        seen = torch.ones(q1 - q0, k1 - k0, dtype=torch.bool).tril(diagonal=(k1 - k0) - (q1 - q0))
        results.append(
            torch.nn.functional.scaled_dot_product_attention(
                q[None], k[None], v[None], attn_mask=seen, scale=scale, enable_gqa=enable_gqa
            )[0].transpose(0, 1)
        )
    return torch.cat(results)


@settings(deadline=None, max_examples=25)
@given(shapes)
def test_variable_length_attention_is_asked_for_the_same(shape: Shape) -> None:
    """What is handed to CUDA's kernel, worked out by a loop; the kernel itself needs a GPU (`benchmarks.gpu`)."""
    pieces = packed_pieces(shape)
    tokens = sum(piece.length for piece in pieces)
    generator = torch.Generator().manual_seed(0)
    sizes = ((tokens, 4, 8), (tokens, 2, 8), (tokens, 2, 8))
    tensors = [torch.randn(size, generator=generator, dtype=torch.float64) for size in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.nn.attention.varlen.varlen_attn", by_the_book)
        found = VariableLength.of(pieces, CPU, torch.float64).masked().attend(*tensors, 0.3)
    expected = Buckets.of(pieces, CPU, torch.float64).masked().attend(*tensors, 0.3)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def packed_pieces(shape: Shape) -> list[Piece]:
    """The prompt and the responses of every group, one after the other."""
    pieces, end = [], 0
    for prompt, responses in shape:
        pieces.append(Piece(end, prompt))
        begin, end = end, end + prompt
        for length in responses:
            pieces.append(Piece(end, length, begin, prompt))
            end += length
    return pieces


def test_a_model_that_looks_through_a_window_is_refused() -> None:
    """Rather than trained with another attention than its own."""
    config = Qwen2Config(**SMALL, **HEADS, use_sliding_window=True, sliding_window=16, max_window_layers=0)
    policy = Policy(built(config, PACKED), 1.0)
    within, beyond = (all_rows(batch_of([(8, [length])]), torch.float64) for length in (8, 12))
    policy(*within.inputs, False, None)
    with pytest.raises(ValueError, match="sliding window"):
        policy(*beyond.inputs, False, None)
