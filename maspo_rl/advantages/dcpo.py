"""DCPO's smooth advantage standardisation, SAS (Yang et al. 2025, arXiv 2509.02333, eq. 8 to 11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from maspo_rl.advantages.base import Advantage
from maspo_rl.types import RewardBatch


@dataclass(frozen=True, kw_only=True)
class Dcpo(Advantage):
    """Standardises with the rewards of all visits to a prompt. At its i-th visit, with the mean and std of this visit
    (new), and of all up to now (total, each visit counting alike):

    A_new = (R - mean_new) / std_new, A_total = (R - mean_total) / std_total, each 0 where its std is 0
    A = the smaller in size of (i - 1)/i A_new + 1/i A_total and 1/i A_new + (i - 1)/i A_total

    So a group of equal rewards still learns from earlier visits. `unbiased`: std over n - 1 (the authors' code) or n
    (the paper). The state, visits, mean and variance by prompt id, goes into the checkpoint.
    """

    unbiased: bool = True
    visits: dict[str, tuple[int, float, float]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def estimate(self, batch: RewardBatch, reward: Tensor) -> Tensor:
        advantage = torch.zeros_like(reward)
        for index, prompt_id in enumerate(batch.prompt_ids):
            members = batch.group == index
            if bool(members.any()):
                advantage[members] = self._visit(prompt_id, reward[members])
        return advantage

    def _visit(self, prompt_id: str, reward: Tensor) -> Tensor:
        count, old_mean, old_variance = self.visits.get(prompt_id, (0, 0.0, 0.0))
        visit = count + 1
        uniform = bool((reward == reward[0]).all())
        mean = float(reward[0] if uniform else reward.mean())
        variance = 0.0 if uniform else float(reward.var(correction=int(self.unbiased)))
        total_mean = (count * old_mean + mean) / visit
        shift = count / visit * (old_mean - mean) ** 2
        total_variance = (count * old_variance + variance + shift) / visit
        self.visits[prompt_id] = (visit, total_mean, total_variance)
        new, total = _standardise(reward, mean, variance), _standardise(reward, total_mean, total_variance)
        mostly_new, mostly_total = (count * new + total) / visit, (new + count * total) / visit
        return torch.where(mostly_new.abs() < mostly_total.abs(), mostly_new, mostly_total)

    def state_dict(self) -> dict[str, Any]:
        """The visits."""
        return {"visits": {prompt_id: list(visit) for prompt_id, visit in self.visits.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.visits.clear()
        self.visits.update(
            {prompt_id: (int(n), float(m), float(v)) for prompt_id, (n, m, v) in state["visits"].items()}
        )


def _standardise(reward: Tensor, mean: float, variance: float) -> Tensor:
    return (reward - mean) / variance**0.5 if variance > 0 else torch.zeros_like(reward)
