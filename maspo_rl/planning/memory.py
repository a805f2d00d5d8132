"""Memory of every process of a run and where it goes, in GiB (2**30 bytes), at its highest point."""

from __future__ import annotations

import math
from typing import Any

from maspo_rl.config.schema import Config
from maspo_rl.objectives.policy_loss import PolicyLoss
from maspo_rl.planning.batch import StepShape
from maspo_rl.planning.hardware import GIB, Gpu
from maspo_rl.planning.model import ModelShape

SIZES = {"float32": 4, "bfloat16": 2}

KEPT_LOGITS = 1 << 26
"""Logits that wait for the backward pass: `KEPT_ELEMENTS` of learner/logprob.py, which imports what a plan need not."""

SHORT_KEYS = 384
"""The most tokens that a row may see for its attention's weights to be kept: `SHORT_KEYS` of learner/attention.py."""

PORTION = 1 << 24
"""Elements whose float32 gradients exist together: `PORTION` of learner/optimizer.py."""

LIBRARIES_GIB = {"driver": 0.28, "ray": 0.34, "verifier": 0.02, "engine": 0.66, "learner": 0.46}
"""Python, libraries and their heap in a process of each kind; `ray` is all of Ray's own processes together.

Measured once: the quickstart on two x86-64 cores without a GPU, proportional set size (a page of n processes counts 1/n
in each) of every process once a second from /proc/<pid>/smaps_rollup, at the peak of their sum, less what is computed
below. The verifier's: its three processes while they compare 40 symbolic answers.
"""
CUDA_CONTEXT_GIB = 0.6
"""CUDA context and NCCL buffers of a process on a GPU: an assumption, not measured."""

_BUCKET_ELEMENTS, _GATHERED_ELEMENTS = 5e8, 1e9
"""DeepSpeed's defaults of `reduce_bucket_size` and, under ZeRO-3, `stage3_max_live_parameters`."""

Parts = dict[str, float]


def memory_section(
    config: Config, shape: ModelShape, dtype: str, step: StepShape, loss: PolicyLoss, gpu: Gpu | None
) -> dict[str, Any]:
    """Parts of each process of a node's host memory and, with GPUs, of each process on a GPU."""
    nodes, on_gpu = config.cluster.nodes, config.cluster.gpus_per_node > 0
    weights = shape.parameters * SIZES[dtype] / GIB
    learner, offloaded = learner_state(config, shape, dtype)
    learner |= {
        "activations": activation_bytes(config, shape, dtype, step.tokens, step.rows, step.width) / GIB,
        "logits": logit_bytes(shape, dtype, step.rows * config.rollout.max_new_tokens) / GIB,
        "reference": weights * loss.needs_reference,
    }
    held = {"weights": weights / config.rollout.tensor_parallel}
    if on_gpu:
        # Every rank reads the whole model into host memory before DeepSpeed moves or splits it.
        engine, rank, shared = {}, offloaded | {"weights_while_loading": weights}, 0.0
    else:
        # vLLM's kernels for CPUs have the weights in an order of their own, and once more a table that is the head too.
        # The cache is no more than what responses fill, and the kernel's again when they are sampled.
        table = shape.vocabulary * shape.hidden * SIZES[dtype] / GIB
        engine = held | {"packed_table": table, "cache": _cache_gib(config, shape, dtype, step)}
        # Without ZeRO the learner's own weights lie in the memory that engines read.
        rank, shared = learner | offloaded, weights * (config.learner.zero_stage > 0)
    counts = {"driver": 1, "ray": 1, "verifier": 1 + config.verifier.workers}
    counts |= {"engine": config.rollout.engines, "learner": config.learner.ranks}
    own: dict[str, Parts] = {"engine": engine, "learner": rank}
    processes = {
        name: _process(own.get(name, {}) | {"libraries": LIBRARIES_GIB[name]}, math.ceil(count / nodes))
        for name, count in counts.items()
    }
    processes["shared_memory"] = _process({"weights_in_transit": shared})
    total = sum(parts["total"] for parts in processes.values())
    section: dict[str, Any] = {"per_node_gib": round(total, 2), "process_gib": processes}
    if on_gpu:
        section["gpu_process_gib"] = {"learner": _process(learner | {"cuda": CUDA_CONTEXT_GIB})}
    if gpu:
        cache = config.rollout.gpu_memory_fraction * gpu.memory_gib - held["weights"] - CUDA_CONTEXT_GIB
        section["gpu_process_gib"]["engine"] = _process(held | {"cache": cache, "cuda": CUDA_CONTEXT_GIB})
    return section


def _cache_gib(config: Config, shape: ModelShape, dtype: str, step: StepShape) -> float:
    """Keys and values of all that one engine samples at once, or as much of them as it may hold."""
    rollout = config.rollout
    sequences = min(rollout.max_sequences, math.ceil(step.responses / rollout.engines))
    token = 2 * shape.layers * shape.kv_heads * shape.head_dim * SIZES[dtype]
    return min(rollout.kv_cache_gib, sequences * step.width * token / GIB)


def learner_state(config: Config, shape: ModelShape, dtype: str) -> tuple[Parts, Parts]:
    """A rank's weights, gradients and AdamW state by ZeRO stage: on its device, and offloaded to the host.

    Stage 0 in float32 updates the weights themselves (16 bytes a parameter); all others keep a float32 copy. Of its
    gradient stage 0 makes a portion at a time, the others the whole. Stage 1 splits the optimiser's part over the
    ranks, 2 the gradients, 3 the weights.
    """
    learner, size, count = config.learner, SIZES[dtype], shape.parameters / GIB
    optimiser, gradients, weights = (learner.ranks if learner.zero_stage >= least else 1 for least in (1, 2, 3))
    state = {"weights": count * size / weights, "gradients": count * size / gradients}
    moments = {"moments": 8 * count / optimiser}
    if learner.zero_stage:
        moments |= {"float32_weights": 4 * count / optimiser, "float32_gradients": 4 * count / optimiser}
    elif size < 4:
        portion = min(PORTION + shape.vocabulary * shape.hidden, shape.parameters) / GIB
        moments |= {"float32_weights": 4 * count, "float32_gradients": 4 * portion}
    if learner.zero_stage >= 2:
        state["reduction_buffer"] = min(_BUCKET_ELEMENTS / GIB, count) * size
    if learner.zero_stage == 3:
        state["gathered_weights"] = min(_GATHERED_ELEMENTS / GIB, count) * size
    host = moments if learner.offload_optimizer else {}
    if not learner.offload_optimizer:
        state |= moments
    if learner.offload_parameters:
        host = host | {"weights": state.pop("weights")}
    return state, host


def activation_bytes(config: Config, shape: ModelShape, dtype: str, tokens: int, rows: int, width: int) -> int:
    """What a forward pass keeps for its backward pass, in layers of the Llama or Qwen kind: `tokens` in all, of `rows`
    responses that see up to `width` of them.

    Per token and layer: two normalisations (input, one float32 number, result), queries, the attention's output, three
    times the inner width of the MLP, and where queries and keys are normalised as much of each head. For each
    row the keys and values that it sees; then, by kernel, the attention's weights, or all of these once for each head
    and a padded output, or nothing. Once, the last normalisation, and what masks the fused kernel on CPUs.
    """
    size, queries, keys = SIZES[dtype], shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    layer = 2 * (2 * size * shape.hidden + 4) + size * (2 * queries + 3 * shape.intermediate)
    if shape.head_norms:
        layer += size * (queries + keys) + 4 * (shape.heads + shape.kv_heads)
    seen = 2 * rows * width * size
    mask = 0
    if config.cluster.gpus_per_node:
        attention = seen * keys
    elif width <= SHORT_KEYS:
        attention = seen * keys + tokens * shape.heads * width * size
    else:
        attention, mask = seen * queries + tokens * queries * size, tokens * width * size
    kept = tokens * layer + attention
    if config.learner.gradient_checkpointing:
        kept += shape.layers * tokens * shape.hidden * size
    else:
        kept *= shape.layers
    return kept + mask + tokens * (size * shape.hidden + 4)


def logit_bytes(shape: ModelShape, dtype: str, response_tokens: int) -> int:
    """The logits that wait for the backward pass in float32, and the gradient of the head before it is added."""
    kept = response_tokens * shape.vocabulary
    return min(kept, KEPT_LOGITS) * 4 + shape.vocabulary * shape.hidden * SIZES[dtype]


def _process(parts: Parts, count: int = 1) -> Parts:
    """The parts of one process, and the sum of `count` of them."""
    return {k: round(v, 3) for k, v in parts.items() if v > 0} | {
        "processes": count,
        "total": count * sum(parts.values()),
    }
