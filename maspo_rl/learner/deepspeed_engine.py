"""DeepSpeed around the policy: process group, configuration, engine."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

from maspo_rl.config.schema import LearnerConfig, OptimizerConfig
from maspo_rl.learner.attention import PACKED, register_packed
from maspo_rl.learner.layers import keep_inputs_alone
from maspo_rl.learner.optimizer import FiniteAdamW, RoundedAdamW
from maspo_rl.learner.policy import Policy


def join_process_group(rank: int, ranks: int, address: str, port: int, *, on_gpu: bool, timeout_s: float) -> None:
    """Joins the learners' process group: NCCL on GPUs, gloo on CPUs."""
    os.environ |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_RANK": "0",
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
    }
    if not on_gpu:
        os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed  # noqa: PLC0415 - chooses its accelerator when imported

    # DeepSpeed's own shared-memory collectives cost half a minute of compiling at the first start, wait by spinning
    # and leave segments behind when a rank is killed; gloo does neither.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(
        "nccl" if on_gpu else "gloo", timeout=timedelta(seconds=timeout_s), auto_mpi_discovery=False, verbose=False
    )


def load_model(path: str, revision: str | None, dtype: torch.dtype, *, gradient_checkpointing: bool) -> Any:
    """The transformers model, on the host. Under ZeRO-3 DeepSpeed splits it parameter by parameter when it starts;
    until then every rank has the whole model in host memory, read through a memory map."""
    from transformers import AutoModelForCausalLM  # noqa: PLC0415
    from transformers.modeling_layers import GradientCheckpointingLayer  # noqa: PLC0415

    register_packed()
    model = AutoModelForCausalLM.from_pretrained(
        path,
        revision=revision,
        dtype=dtype,
        attn_implementation=PACKED,
        # Dropout has no place in a ratio of two passes over the same tokens.
        attention_dropout=0.0,
    )
    keep_inputs_alone(model)
    if gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
        for layer in model.modules():
            if isinstance(layer, GradientCheckpointingLayer):
                # A layer that is not in training keeps its activations. What lies in it stays as it was: no dropout.
                layer.training = True
    return model


def deepspeed_config(learner: LearnerConfig, dtype: torch.dtype) -> dict[str, Any]:
    """DeepSpeed's configuration. Batch sizes are nominal: micro-batches, clipping and loss scale are ours."""
    zero: dict[str, Any] = {
        "stage": learner.zero_stage,
        "overlap_comm": False,
        # One optimiser call per update, so that the norm that is checked is the whole norm.
        "sub_group_size": int(1e15),
        "stage3_param_persistence_threshold": 100_000,
    }
    if learner.offload_optimizer:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": torch.cuda.is_available()}
    if learner.offload_parameters:
        zero["offload_param"] = {"device": "cpu", "pin_memory": torch.cuda.is_available()}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 0.0,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        # Without ZeRO the weights stay as they come, and the optimiser rounds them itself (`RoundedAdamW`).
        "bf16": {"enabled": dtype is torch.bfloat16 and learner.zero_stage > 0, "check_grad_overflow": False},
        "communication_data_type": {torch.bfloat16: "bf16", torch.float32: "fp32"}[dtype],
        "steps_per_print": 10**9,
        "wall_clock_breakdown": False,
    }


def start_engine(
    policy: Policy,
    learner: LearnerConfig,
    optimizer: OptimizerConfig,
    dtype: torch.dtype,
    device: torch.device,
    largest_norm: float,
) -> tuple[Any, FiniteAdamW]:
    """The DeepSpeed engine over `policy`, and the optimiser inside it."""
    import deepspeed  # noqa: PLC0415

    # Without ZeRO every rank holds whole gradients; with it, a share of them.
    shares = learner.zero_stage > 0

    def sum_squares(squares: Tensor) -> Tensor:
        if shares:
            torch.distributed.all_reduce(squares)
        return squares

    if not shares:
        policy.to(device)  # as DeepSpeed will, but before the optimiser copies the weights
    kind = FiniteAdamW if shares or dtype is torch.float32 else RoundedAdamW
    adamw = kind([p for p in policy.parameters() if p.requires_grad], optimizer, sum_squares, largest_norm)
    engine, _, _, _ = deepspeed.initialize(
        model=policy, optimizer=adamw, config=deepspeed_config(learner, dtype), dist_init_required=False
    )
    if learner.ranks == 1 and not shares:
        # Nobody to sum with, and DeepSpeed would copy all gradients into one buffer for it and back.
        engine.enable_backward_allreduce = False
    return engine, adamw
