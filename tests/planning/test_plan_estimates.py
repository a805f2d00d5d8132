"""A plan's numbers against closed forms, the learner's own code, and what runs really took."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from descriptions import QWEN_7B, SMOLLM2
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM

from maspo_rl.config.load import load
from maspo_rl.config.schema import Config
from maspo_rl.data import PromptSet, embedded_policy_path
from maspo_rl.learner import attention, optimizer
from maspo_rl.learner.attention import Piece, pack
from maspo_rl.learner.batch import SequenceBatch, plan_updates
from maspo_rl.learner.deepspeed_engine import load_model
from maspo_rl.learner.logprob import KEPT_ELEMENTS
from maspo_rl.objectives.compose import build_policy_loss
from maspo_rl.planning import memory
from maspo_rl.planning.batch import StepShape, step_shape
from maspo_rl.planning.hardware import GPUS, disk_section, time_section
from maspo_rl.planning.memory import GIB, KEPT_LOGITS, SIZES, activation_bytes, learner_state, memory_section
from maspo_rl.planning.model import ModelShape, _built, _closed_form, read_shape
from maspo_rl.planning.plan import make_plan
from maspo_rl.types import Group, Prompt, Rollout


def described(folder: Path, description: dict[str, object]) -> ModelShape:
    (folder / "config.json").write_text(json.dumps(description))
    return read_shape(str(folder), None)


def prompts(*lengths: int) -> PromptSet:
    return PromptSet(tuple(Prompt(str(n), (0,) * n, "", "", "") for n in lengths), {"read": len(lengths)})


def test_parameters_are_counted_without_weights(tmp_path: Path) -> None:
    """134,515,008: what scripts/export_smollm2.py reports of the real weights; 7,615,616,512 is Qwen2.5-7B's number."""
    assert described(tmp_path, SMOLLM2).parameters == 134_515_008
    assert described(tmp_path, QWEN_7B).parameters == 7_615_616_512


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_the_closed_form_counts_what_the_models_code_builds(
    kind: str, biased: bool, tied: bool, tmp_path: Path
) -> None:
    """Heads are wider than their share of the model; of biases Qwen2 knows no choice."""
    small = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "vocab_size": 96} | {
        "num_attention_heads": 4, "num_key_value_heads": 2, "model_type": kind, "tie_word_embeddings": tied,
    }  # fmt: skip
    small |= {"head_dim": 16, "attention_bias": biased, "mlp_bias": biased, "max_position_embeddings": 64}
    (tmp_path / "config.json").write_text(json.dumps(small))
    closed = _closed_form(small)
    assert closed is not None
    assert closed == _built(str(tmp_path), None)


def test_a_model_without_a_closed_form_is_built(tmp_path: Path) -> None:
    """124,439,808: GPT-2's own count, which its authors round to 124M."""
    gpt2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
    assert described(tmp_path, gpt2).parameters == 124_439_808


def test_the_quickstart_takes_what_is_planned() -> None:
    """2.72 GiB: peak proportional set size of all processes once a second, `maspo-rl train experiment=quickstart
    model.dtype=float32 trainer.steps=20`."""
    planned = make_plan(["experiment=quickstart", "model.dtype=float32"]).sections["memory"]["per_node_gib"]
    assert planned == pytest.approx(2.72, rel=0.2)


def test_smollm2_takes_what_is_planned(tmp_path: Path) -> None:
    """6.35 GiB, taken in the same way once a second, of `maspo-rl train experiment=smollm2_gsm8k trainer.steps=2
    trainer.prompts_per_step=8 rollout.samples_per_prompt=4 rollout.max_new_tokens=64` with the weights of
    scripts/export_smollm2.py in float32 and GSM8K, whose longest prompt has 271 tokens."""
    small = ["trainer.prompts_per_step=8", "rollout.samples_per_prompt=4", "rollout.max_new_tokens=64"]
    config = load(["experiment=smollm2_gsm8k", *small])
    loss = build_policy_loss(config.algorithm)
    step = step_shape(config, loss, prompts(271), greedy=False)
    planned = memory_section(config, described(tmp_path, SMOLLM2), "float32", step, loss, None)
    assert planned["per_node_gib"] == pytest.approx(6.35, rel=0.2)


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120.0), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_states_are_those_of_the_zero_paper(stage: int, gigabytes: float) -> None:
    """Rajbhandari et al. 2020 (arXiv 1910.02054), figure 1: 7.5B parameters, 64 ranks, 16 bytes a parameter.

    Ours takes 4 more for the float32 gradient that DeepSpeed makes of the bfloat16 one, and buffers."""
    config = load([f"learner.zero_stage={stage}", "learner.ranks=64"])
    shape = ModelShape(7_500_000_000, 1, 1, 1, 1, 1, 1, 1, 1, None)
    state, offloaded = learner_state(config, shape, "bfloat16")
    paper = state["weights"] + state["gradients"] + state["moments"] + state["float32_weights"]
    assert paper * GIB / 1e9 == pytest.approx(gigabytes, abs=0.06)
    assert not offloaded


def test_offloading_moves_the_state_to_the_host() -> None:
    shape = ModelShape(1_000_000_000, 1, 1, 1, 1, 1, 1, 1, 1, None)
    base = ["learner.zero_stage=3", "learner.ranks=2"]
    device, _ = learner_state(load(base), shape, "bfloat16")
    offload = ["learner.offload_optimizer=true", "learner.offload_parameters=true"]
    left, host = learner_state(load([*base, *offload]), shape, "bfloat16")
    assert sum(left.values()) + sum(host.values()) == pytest.approx(sum(device.values()))
    assert set(host) == {"weights", "moments", "float32_weights", "float32_gradients"}


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("model", ["embedded", "llama"])
@pytest.mark.parametrize("width", [64, 400])
def test_activations_are_what_autograd_keeps(
    width: int, model: str, dtype: str, checkpointing: bool, tmp_path: Path
) -> None:
    """Bytes of the distinct tensors that a forward pass saves for its backward pass, parameters aside. Four responses
    share a prompt, whose own attention the plan leaves out."""
    source = str(embedded_policy_path())
    if model == "llama":
        small = {"hidden_size": 288, "intermediate_size": 768, "num_hidden_layers": 4, "vocab_size": 64}
        described(tmp_path, SMOLLM2 | small)
        built = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(tmp_path), dtype=getattr(torch, dtype))
        built.save_pretrained(tmp_path)
        source = str(tmp_path)
    loaded = load_model(source, None, getattr(torch, dtype), gradient_checkpointing=checkpointing)
    parameters = {parameter.untyped_storage().data_ptr() for parameter in loaded.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage
        return tensor

    rows, prompt = 4, 8
    pieces = [Piece(0, prompt)]
    pieces += [Piece(prompt + row * (width - prompt), width - prompt, 0, prompt) for row in range(rows)]
    tokens = sum(piece.length for piece in pieces)
    packing = pack(pieces, torch.device("cpu"), getattr(torch, dtype)).masked()
    ids = torch.zeros(1, tokens, dtype=torch.int64)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = loaded.get_decoder()(input_ids=ids, position_ids=ids, use_cache=False, packing=packing)
    assert output.last_hidden_state.requires_grad
    shape = read_shape(source, None)
    config = load([f"learner.gradient_checkpointing={checkpointing}"])
    planned = activation_bytes(config, shape, dtype, tokens, rows, width)
    if checkpointing:  # besides, one layer is computed again at a time, and the mask is not among what autograd saves
        planned -= tokens * width * SIZES[dtype] * (width > attention.SHORT_KEYS)
        layers = [activation_bytes(load([]), replace(shape, layers=n), dtype, tokens, rows, width) for n in (1, 2)]
        planned -= layers[1] - layers[0]
    assert sum(storage.nbytes() for storage in kept.values()) == pytest.approx(planned, rel=0.03)


def test_the_planned_logits_are_the_learners() -> None:
    assert KEPT_LOGITS == KEPT_ELEMENTS


def test_the_planned_portion_is_the_optimisers() -> None:
    assert memory.PORTION == optimizer.PORTION


def test_the_planned_attention_is_the_learners() -> None:
    assert memory.SHORT_KEYS == attention.SHORT_KEYS


@settings(deadline=None, max_examples=30)
@given(
    groups=st.integers(1, 6), samples=st.integers(1, 4), updates=st.integers(1, 3), ranks=st.integers(1, 2),
    prompt=st.integers(1, 9), response=st.integers(1, 9), budget=st.integers(18, 120),
)  # fmt: skip
def test_micro_batches_are_those_that_the_learner_makes(
    groups: int, samples: int, updates: int, ranks: int, prompt: int, response: int, budget: int
) -> None:
    """Responses of one length, in a batch that updates and ranks divide."""
    count = groups * updates * ranks
    rollout = Rollout("p", 0, (0,) * response, (0.0,) * response, "", "stop", 0, 0)
    group = Group(Prompt("p", (0,) * prompt, "", "", ""), (rollout,) * samples, (), ())
    made = plan_updates(SequenceBatch.build([group] * count, [0.0] * (count * samples)), updates, ranks, budget)
    config = Config()
    config.trainer.prompts_per_step, config.rollout.samples_per_prompt = count, samples
    config.trainer.updates_per_step, config.learner.ranks = updates, ranks
    config.rollout.max_new_tokens, config.learner.micro_batch_tokens = response, budget
    step = step_shape(config, build_policy_loss(config.algorithm), prompts(prompt), greedy=False)
    assert len(made) == updates
    for update in made:
        for rank in update.micro_batches:
            assert len(rank) == step.micro_batches
            assert max(map(len, rank)) == step.rows


@pytest.mark.parametrize(
    ("overrides", "forward", "training"),
    [
        ([], 0.75, 1),  # the first of four updates scores the old log-probs itself
        (["trainer.updates_per_step=1"], 0, 1),
        (["algorithm.kl.coefficient=0.1"], 1.75, 1),  # and the reference
        (["algorithm=bapo"], 1, 1),  # observes the update before it
        (["algorithm=lopti"], 2, 2),  # two passes over the batch, and a reference
    ],
)
def test_passes_over_the_batch(overrides: list[str], forward: float, training: int) -> None:
    config = load(["experiment=quickstart", *overrides])
    step = step_shape(config, build_policy_loss(config.algorithm), None, greedy=False)
    assert step.training_passes == training
    assert step.forward_passes - build_policy_loss(config.algorithm).observes_live == forward


@pytest.mark.parametrize(
    ("dtype", "learner", "policy"), [("float32", 13_782_384, 4_583_912), ("bfloat16", 16_080_317, 2_293_232)]
)
def test_a_checkpoint_has_the_size_that_was_written(dtype: str, learner: int, policy: int) -> None:
    """Bytes of the files of the quickstart's checkpoint, pickled and with headers, as they were once written."""
    plan = make_plan(["experiment=quickstart", f"model.dtype={dtype}"])
    disk = plan.sections["disk"]
    assert disk["learner_state_bytes"] == pytest.approx(learner, rel=0.01)
    assert disk["policy_bytes"] == pytest.approx(policy, rel=0.01)
    assert disk["checkpoints_written"] == 3
    assert disk["run_at_most_bytes"] - disk["run_bytes"] == disk["checkpoint_bytes"]


def test_times_are_the_rooflines() -> None:
    """One response, next to no layers: decoding reads the weights for each token, training counts products."""
    config = load(["cluster=single_node_8gpu", "rollout.max_new_tokens=1000", "rollout.samples_per_prompt=1"])
    shape = ModelShape(10**9, 1, 1, 1, 1, 1, 1, 1, 1, None)
    step = StepShape(1, 24.0, 24, 1, 1024, 1024, 1, 0.0, 1)
    times = time_section(config, shape, GPUS["H100"], step, "ipc", evaluated=0)["limit"]
    # 2e9 bytes at 70 % of 3.35 TB/s, 4 ms on top, 1,000 tokens; the prefill is below a millisecond.
    assert times["rollout_s"] == pytest.approx(1000 * (2e9 / (0.7 * 3.35e12) + 0.004), rel=0.01)
    # 6 products a parameter and token, at 35 % of 989 TFLOP/s
    assert times["learn_s"] == pytest.approx(1024 * 6e9 / (0.35 * 989e12), rel=0.01)
    assert times["transfer_s"] == pytest.approx(0.02)
    assert disk_section(config, shape, 2, 0)["checkpoint_bytes"] == 16e9  # 2 + 4 + 8 and 2 bytes a parameter
