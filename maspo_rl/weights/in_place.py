"""Weights into a running CPU engine without vLLM's reload.

vLLM reloads a layer by building it anew: meta tensors, loaders bound by signature, a fresh copy, packing, a copy back.
For a dense model the outcome is known: every parameter takes one tensor, or several stacked, and a linear layer packs
it for its kernel. That is done here, straight from the memory in which the tensors lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.vocab_parallel_embedding import (
    ParallelLMHead,
    UnquantizedEmbeddingMethod,
    VocabParallelEmbedding,
)


@dataclass(frozen=True)
class _Place:
    """`parts`, stacked along their first dimension, are parameter `name` of `layer`."""

    layer: Any  # vLLM sets a layer's methods and sizes as attributes
    name: str
    parts: tuple[Tensor, ...]

    @property
    def packs(self) -> bool:
        """Whether the layer keeps the parameter in its kernel's order, and no other copy."""
        return self.name == "weight" and isinstance(self.layer, LinearBase)

    def stacked(self) -> Tensor:
        """The parts as one: a view where they lie one after the other in memory, else a copy."""
        first = self.parts[0]
        end = first.storage_offset()
        for part in self.parts:
            if part.storage_offset() != end or part.untyped_storage().data_ptr() != first.untyped_storage().data_ptr():
                return torch.cat(self.parts)
            end += part.numel()
        rows = sum(len(part) for part in self.parts)
        return first.as_strided((rows, *first.shape[1:]), first.stride())

    def fill(self) -> None:
        """Puts the parts into the layer."""
        if not self.packs:
            present, begin = getattr(self.layer, self.name).data, 0
            for part in self.parts:
                present[begin : begin + len(part)].copy_(part)
                begin += len(part)
            return
        # The packed copy goes first, so that the next one finds its memory.
        self.layer.cpu_linear = None
        self.layer.weight = torch.nn.Parameter(self.stacked(), requires_grad=False)
        self.layer.quant_method.process_weights_after_loading(self.layer)

    def is_filled(self) -> bool:
        """Whether the layer, as vLLM's own loader left it, holds exactly these parts where they would be put."""
        whole = self.stacked()
        if not self.packs:
            present = getattr(self.layer, self.name).data
            # A kernel may keep its bias in a format of its own.
            return present.shape[1:] == whole.shape[1:] and torch.equal(present[: len(whole)], whole.to(present.dtype))
        shape = (self.layer.output_size_per_partition, self.layer.input_size_per_partition)
        if whole.shape != shape or whole.dtype != self.layer.params_dtype:
            return False
        probe = torch.randn(4, whole.shape[1], dtype=whole.dtype)
        before = self.layer.cpu_linear(probe, self.layer.weight, None)
        self.fill()
        return torch.equal(before, self.layer.cpu_linear(probe, self.layer.weight, None))


class InPlace:
    """Where each of a model's tensors goes, and the way there."""

    def __init__(self, places: list[_Place], heads: list[Any]) -> None:
        self._places = places
        self._heads = heads

    @classmethod
    def learn(cls, model: torch.nn.Module, weights: list[tuple[str, Tensor]]) -> InPlace | None:
        """From a model into which vLLM's own loader has just put `weights`; None for one that must be left to it: of
        other layers than these, or in which anything does not lie as expected.
        """
        places = _places(model, dict(weights))
        if places is None or not all(place.is_filled() for place in places):
            return None
        tables = [layer for layer in model.modules() if isinstance(layer, VocabParallelEmbedding)]
        heads = [layer for layer in tables if isinstance(layer, ParallelLMHead)]
        # A table that no head stands beside is the head as well.
        return cls(places, heads or tables)

    def load(self) -> None:
        """Puts what lies in the tensors now into the model."""
        for place in self._places:
            place.fill()
        for head in self._heads:
            head.cpu_linear = None
            head.quant_method.process_weights_after_loading(head)


def _places(model: torch.nn.Module, weights: dict[str, Tensor]) -> list[_Place] | None:
    stacks = getattr(model, "packed_modules_mapping", {})
    places, seen = [], set()
    for path, layer in model.named_modules():
        method = getattr(layer, "quant_method", None)
        if method is not None and type(method) not in (UnquantizedLinearMethod, UnquantizedEmbeddingMethod):
            return None
        for name, parameter in layer.named_parameters(recurse=False):
            if id(parameter) in seen and parameter.numel():
                continue  # a head tied to the embedding
            seen.add(id(parameter))
            parent, _, own = path.rpartition(".")
            sources = [f"{parent}.{source}.{name}" for source in stacks.get(own, [own])]
            if not all(source in weights for source in sources):
                return None
            places.append(_Place(layer, name, tuple(weights.pop(source) for source in sources)))
    return None if weights else places
