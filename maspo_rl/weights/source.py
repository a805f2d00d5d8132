"""The policy's parameters as a stream, gathered one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from maspo_rl.weights.digest import RunningDigest
from maspo_rl.weights.layout import TensorMeta


class GatheredSource:
    """The policy's parameters, whole, one after the other.

    Under ZeRO-3 each parameter is gathered when its turn comes and given back before the next: no second copy of the
    model. All ranks must iterate together.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def metadata(self) -> list[TensorMeta]:
        """What iterating will yield, in its order."""
        return [
            TensorMeta(name, parameter.dtype, torch.Size(getattr(parameter, "ds_shape", parameter.shape)))
            for name, parameter in self._module.named_parameters()
        ]

    def move_into(self, tensors: Iterable[tuple[str, Tensor]]) -> None:
        """Has the parameters lie in `tensors` from now on, of which there is one for each. Not with ZeRO, which keeps
        them in buffers of its own."""
        for (_, tensor), parameter in zip(tensors, self._module.parameters(), strict=True):
            parameter.data = tensor.copy_(parameter.data)

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        import deepspeed  # noqa: PLC0415 - chooses its accelerator when imported, which the driver must not

        for name, parameter in self._module.named_parameters():
            if not hasattr(parameter, "ds_id"):
                yield name, parameter.data
                continue
            with deepspeed.zero.GatheredParameters([parameter]):
                yield name, parameter.data


class DigestedSource(GatheredSource):
    """Digests the parameters on the way: the tensors themselves are sent, and nothing else would see their bytes."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__(module)
        self.digest = RunningDigest()

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        self.digest = RunningDigest()
        for name, tensor in super().__iter__():
            self.digest.add(name, tensor)
            yield name, tensor
