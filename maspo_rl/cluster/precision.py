"""Which number format a machine multiplies natively."""

from __future__ import annotations

from typing import Literal, cast

import torch

from maspo_rl.config.schema import ClusterConfig, ModelConfig


def compute_dtype(model: ModelConfig, cluster: ClusterConfig) -> Literal["float32", "bfloat16"]:
    """`model.dtype`, with auto resolved: bfloat16 on GPUs and on CPUs with AMX or AVX-512 bfloat16, else float32.

    On a CPU without either, bfloat16 is emulated: sampling the embedded policy takes three times as long in it.
    """
    if model.dtype != "auto":
        return cast(Literal["float32", "bfloat16"], model.dtype)
    on_gpu = cluster.gpus_per_node > 0
    native = on_gpu or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return "bfloat16" if native else "float32"
