"""What follows from several keys at once; everybody who needs it takes it from here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, cast

from maspo_rl.config.data import DataConfig
from maspo_rl.config.load import load_data
from maspo_rl.config.schema import ClusterConfig, Config, ModelConfig, RolloutConfig


def run_directory(config: Config) -> Path:
    """`<run.dir>/<run.name>`."""
    return Path(config.run.dir) / (config.run.name or "")


def evaluation_data(config: Config) -> DataConfig:
    """The data set whose problems the run is evaluated on."""
    return config.data if config.eval.data is None else load_data(config.eval.data)


def context_tokens(config: Config) -> int:
    """Prompt and response tokens that an engine must hold: `rollout.max_context`, or what the longest request needs."""
    if config.rollout.max_context is not None:
        return config.rollout.max_context
    training = config.data.max_prompt_tokens + config.rollout.max_new_tokens
    evaluation = evaluation_data(config).max_prompt_tokens + evaluation_tokens(config)
    return max(training, evaluation)


def evaluation_tokens(config: Config) -> int:
    """Most response tokens in evaluation."""
    return config.eval.max_new_tokens or config.rollout.max_new_tokens


def batch_sequences(config: Config) -> int:
    """Responses of one step: prompts_per_step x samples_per_prompt."""
    return config.trainer.prompts_per_step * config.rollout.samples_per_prompt


def engine_threads(rollout: RolloutConfig) -> int:
    """CPU threads of one engine, which all sample at the same time."""
    return rollout.threads or max(1, (os.cpu_count() or 1) // rollout.engines)


def transfer_backend(config: Config) -> str:
    """`weights.backend`, with auto resolved by where engines and learners are."""
    if config.weights.backend != "auto":
        return config.weights.backend
    if config.cluster.gpus_per_node == 0:
        return "shared_memory"
    return "ipc" if config.cluster.colocate else "nccl"


def compute_dtype(model: ModelConfig, cluster: ClusterConfig) -> Literal["float32", "bfloat16"]:
    """`model.dtype`, with auto resolved: bfloat16 on GPUs and on CPUs with AMX or AVX-512 bfloat16, else float32.

    On a CPU without either, bfloat16 is emulated: sampling the embedded policy takes three times as long in it.
    """
    if model.dtype != "auto":
        return cast(Literal["float32", "bfloat16"], model.dtype)
    import torch  # noqa: PLC0415 - seconds that a misspelt key must not cost

    on_gpu = cluster.gpus_per_node > 0
    native = on_gpu or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bfloat16" if native else "float32"
