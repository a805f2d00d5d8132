"""Per-token diagnostics summed over micro-batches, updates and ranks."""

from __future__ import annotations

import torch
from torch import Tensor


class Statistics:
    """Weighted means and maxima by name; names that end in `_max` take the maximum.

    Sums are float64 tensors on the device: nothing waits for them until `reduced` is asked for.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sums: dict[str, Tensor] = {}
        self._maxima: dict[str, Tensor] = {}

    def add(self, name: str, values: Tensor, weights: Tensor | None = None) -> None:
        """`values[N]`, with weights[N] or all alike. N may be 0."""
        if name.endswith("_max"):
            least = torch.tensor(-torch.inf, dtype=torch.float64, device=self._device)
            largest = values.max().double() if values.numel() else least
            self._maxima[name] = torch.maximum(self._maxima.get(name, least), largest)
            return
        if weights is None:
            pair = torch.stack(
                [values.double().sum(), torch.tensor(float(values.numel()), device=self._device).double()]
            )
        else:
            weights = weights.double()
            pair = torch.stack([(values.double() * weights).sum(), weights.sum()])
        self._sums[name] = self._sums[name] + pair if name in self._sums else pair

    def reduced(self) -> dict[str, float]:
        """All metrics over all ranks, which must have added the same names. A mean of nothing is left out."""
        names, maxima = sorted(self._sums), sorted(self._maxima)
        sums = torch.stack([self._sums[name] for name in names])
        torch.distributed.all_reduce(sums)
        result = {name: total / weight for name, (total, weight) in zip(names, sums.tolist(), strict=True) if weight}
        if maxima:
            largest = torch.stack([self._maxima[name] for name in maxima])
            torch.distributed.all_reduce(largest, op=torch.distributed.ReduceOp.MAX)
            result |= {name: value for name, value in zip(maxima, largest.tolist(), strict=True) if value > -torch.inf}
        return result
