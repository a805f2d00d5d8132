"""The policy's parameters as a stream, gathered one at a time, digested on the way."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from maspo_rl.weights.digest import RunningDigest
from maspo_rl.weights.layout import TensorMeta


class GatheredSource:
    """The policy's parameters, whole, one after the other; digests them on the way.

    Under ZeRO-3 each parameter is gathered when its turn comes and given back before the next: no second copy of the
    model. All ranks must iterate together.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self.digest = RunningDigest()

    def metadata(self) -> list[TensorMeta]:
        """What iterating will yield, in its order."""
        return [
            TensorMeta(name, parameter.dtype, torch.Size(getattr(parameter, "ds_shape", parameter.shape)))
            for name, parameter in self._module.named_parameters()
        ]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        import deepspeed  # noqa: PLC0415 - chooses its accelerator when imported, which the driver must not

        self.digest = RunningDigest()
        for name, parameter in self._module.named_parameters():
            with deepspeed.zero.GatheredParameters([parameter], enabled=hasattr(parameter, "ds_id")):
                self.digest.add(name, parameter.data)
                yield name, parameter.data
