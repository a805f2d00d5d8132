"""The policy as the learner sees it: token ids in, log-probs of the sampled tokens out."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

# Logits of this many elements are made at a time (float32: 256 MiB); more are recomputed chunk by chunk backwards.
_CHUNK_ELEMENTS = 1 << 26


class Policy(nn.Module):
    """A causal language model whose head is applied to response tokens only."""

    def __init__(self, model: nn.Module, temperature: float) -> None:
        super().__init__()
        self.model = model
        self._temperature = temperature

    def forward(
        self, input_ids: Tensor, position: Tensor, target: Tensor, entropy_gradient: bool
    ) -> tuple[Tensor, Tensor]:
        """(log-prob[N], entropy[N]) in nats at the sampling temperature, float32.

        `input_ids[B, T]` is padded on the right; `position[N]` indexes the flattened [B*T]. The entropy carries a
        gradient only if asked for.
        """
        hidden = self.model.get_decoder()(input_ids=input_ids, use_cache=False).last_hidden_state  # type: ignore[operator]
        selected = hidden.flatten(0, 1)[position]
        head = self.model.get_output_embeddings()  # type: ignore[operator]
        rows = max(1, _CHUNK_ELEMENTS // head.out_features)
        if len(position) <= rows:
            return self._score(head, selected, target, entropy_gradient)
        chunks = [
            checkpoint(self._score, head, *part, entropy_gradient, use_reentrant=False)
            for part in zip(torch.split(selected, rows), torch.split(target, rows), strict=True)
        ]
        logprobs, entropies = zip(*chunks, strict=True)
        return torch.cat(logprobs), torch.cat(entropies)

    def _score(self, head: nn.Module, hidden: Tensor, target: Tensor, entropy_gradient: bool) -> tuple[Tensor, Tensor]:
        logits = head(hidden).float() / self._temperature
        logprobs = functional.log_softmax(logits, dim=-1)
        with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
            # A token of probability 0 adds nothing, though its log-prob is minus infinity.
            entropy = -(logprobs.exp() * logprobs.clamp_min(torch.finfo(torch.float32).min)).sum(-1)
        return logprobs.gather(-1, target[:, None]).squeeze(-1), entropy
