"""Bytes, disk and time of a run: what moves in a step, what stays on disk, how long a step takes on a known GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maspo_rl.config.errors import InputError
from maspo_rl.config.schema import Config
from maspo_rl.planning.batch import StepShape
from maspo_rl.planning.model import ModelShape

GIB = 1024**3
# A token of a rollout in Ray's object store (id, float64 log-prob and text, pickled; measured) and as text on disk.
_ROLLOUT_TOKEN_BYTES, _TEXT_TOKEN_BYTES, _SAMPLE_BYTES = 17, 4, 500


@dataclass(frozen=True, slots=True)
class Gpu:
    """What bounds a GPU: GiB of memory, bfloat16 FLOP/s without sparsity, bytes/s of memory."""

    memory_gib: float
    flops: float
    bandwidth: float


GPUS = {"A100": Gpu(79.6, 312e12, 2.04e12), "H100": Gpu(79.6, 989e12, 3.35e12), "H200": Gpu(140.4, 989e12, 4.8e12)}
"""The SXM boards of 80, 80 and 141 GB, by NVIDIA's data sheets; memory as the driver reports it."""

_TRAINING, _SAMPLING, _BANDWIDTH, _TOKEN_S, _IPC, _NCCL = 0.35, 0.5, 0.7, 0.004, 1e11, 2e10
ASSUMPTIONS = [
    f"of the GPU's bfloat16 rate training reaches {_TRAINING:.0%}, prefill and decoding {_SAMPLING:.0%}",
    f"decoding reads weights and cache at {_BANDWIDTH:.0%} of the memory's rate, and {_TOKEN_S} s a token on top",
    f"weights move at {_IPC / 1e9:.0f} GB/s by ipc, {_NCCL / 1e9:.0f} GB/s by nccl",
    "a prompt is prefilled once for all its samples; nothing waits for the verifier",
    "all responses have half the limit, or all of it; start-up and checkpoints are not counted",
]


def known_gpu(name: str | None, config: Config) -> Gpu | None:
    """The GPU of that name. Raises InputError where it is unknown, or where the run has none."""
    if name is not None and name not in GPUS:
        raise InputError(f"--gpu {name}: known are {', '.join(GPUS)}")
    if name is not None and not config.cluster.gpus_per_node:
        raise InputError(f"--gpu {name}: cluster.gpus_per_node=0, the run has no GPU; choose cluster=single_node_8gpu")
    return GPUS[name] if name else None


def moved_section(config: Config, shape: ModelShape, size: int, step: StepShape, backend: str) -> dict[str, Any]:
    """Bytes that a step moves between processes where every response has the largest length."""
    response, prompt = step.responses * config.rollout.max_new_tokens, int(step.responses * step.prompt_mean)
    return {
        "weights_by": backend,
        "weights_to_an_engine_bytes": shape.parameters * size,
        "weights_bytes": shape.parameters * size * config.rollout.engines,
        "rollouts_bytes": response * _ROLLOUT_TOKEN_BYTES + prompt * 3,
        # int64 ids of prompt and response, float32 log-probs of the response
        "batch_bytes": 8 * (prompt + response) + 4 * response,
    }


def disk_section(config: Config, shape: ModelShape, size: int, evaluated: int) -> dict[str, Any]:
    """Bytes of a checkpoint, and of the run's directory; `evaluated`: responses over all evaluations."""
    steps, every, keep = config.trainer.steps, config.checkpoint.every, config.checkpoint.keep
    copied = config.learner.zero_stage > 0 or size < 4  # a float32 copy of the weights beside AdamW's moments
    learner, policy = shape.parameters * (size + 8 + 4 * copied), shape.parameters * size
    written = -(-steps // every) if every else 1
    samples = steps * config.report.samples_per_step + evaluated
    text = samples * (_SAMPLE_BYTES + config.rollout.max_new_tokens * _TEXT_TOKEN_BYTES)
    return {
        "learner_state_bytes": learner,
        "policy_bytes": policy,
        "checkpoint_bytes": learner + policy,
        "checkpoints_written": written,
        "samples_bytes": text,
        "run_bytes": min(written, keep) * (learner + policy) + text,
        # A checkpoint is whole before the oldest goes.
        "run_at_most_bytes": min(written, keep + 1) * (learner + policy) + text,
    }


def time_section(
    config: Config, shape: ModelShape, gpu: Gpu, step: StepShape, backend: str, evaluated: int
) -> dict[str, Any]:
    """Seconds of a step's phases and hours of the run by rooflines, at half and at the whole response limit."""
    section: dict[str, Any] = {}
    for name, length in (
        ("half_the_limit", config.rollout.max_new_tokens / 2),
        ("limit", config.rollout.max_new_tokens),
    ):
        # Products of weights, and of the queries and keys that causal attention pairs; a prompt counts once a group.
        prompt, samples = step.prompt_mean, config.rollout.samples_per_prompt
        pairs = prompt**2 / 2 / samples + length * (prompt + length / 2)
        forward = 2 * shape.parameters * (prompt / samples + length)
        forward += 4 * shape.layers * shape.heads * shape.head_dim * pairs
        passes = step.forward_passes + step.training_passes * (4 if config.learner.gradient_checkpointing else 3)
        rollout = _sampling_s(config, shape, gpu, step, step.responses, samples, length)
        learn = step.responses * forward * passes / (config.learner.ranks * gpu.flops * _TRAINING)
        transfer = 2 * shape.parameters / (_IPC if backend == "ipc" else _NCCL)
        tests = _sampling_s(config, shape, gpu, step, evaluated, config.eval.samples, length)
        seconds = rollout + learn + transfer
        figures = {"rollout_s": rollout, "learn_s": learn, "transfer_s": transfer, "step_s": seconds}
        figures |= {"evaluations_h": tests / 3600, "run_h": (seconds * config.trainer.steps + tests) / 3600}
        section[name] = {key: float(f"{value:.3g}") for key, value in figures.items()}
    return section | {"assumptions": ASSUMPTIONS}


def _sampling_s(
    config: Config, shape: ModelShape, gpu: Gpu, step: StepShape, responses: int, samples: int, length: float
) -> float:
    """As many responses at a time as fit, each of their tokens bound by the slower of memory and arithmetic."""
    rollout, weights = config.rollout, 2 * shape.parameters
    parallel, share = rollout.tensor_parallel, responses / rollout.engines
    token_cache = 4 * shape.layers * shape.kv_heads * shape.head_dim
    room = rollout.gpu_memory_fraction * gpu.memory_gib * GIB * parallel - weights
    together = max(1.0, min(share, rollout.max_sequences, room / (token_cache * (step.prompt_mean + length))))
    read = (weights + together * token_cache * (step.prompt_mean + length / 2)) / (gpu.bandwidth * _BANDWIDTH)
    token = max(read, weights * together / (gpu.flops * _SAMPLING)) / parallel + _TOKEN_S
    prefill = weights * step.prompt_mean * share / samples / (gpu.flops * _SAMPLING * parallel)
    return share / together * length * token + prefill
