"""The policy as the learner sees it: token ids in, log-probs of the sampled tokens out."""

from __future__ import annotations

import math

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
        self, input_ids: Tensor, position: Tensor, target: Tensor, entropy_gradient: bool, proxy_kappa: float | None
    ) -> tuple[Tensor, ...]:
        """(log-prob[N], entropy[N]) in nats at the sampling temperature, float32; with a kappa, proxy log-prob[N] too.

        `input_ids[B, T]` is padded on the right; `position[N]` indexes the flattened [B*T]. The entropy carries a
        gradient only if asked for, the proxy never: it is the policy without the tokens below `proxy_kappa` times the
        largest probability (`TokenBatch.proxy_logprob`).
        """
        hidden = self.model.get_decoder()(input_ids=input_ids, use_cache=False).last_hidden_state  # type: ignore[operator]
        selected = hidden.flatten(0, 1)[position]
        head = self.model.get_output_embeddings()  # type: ignore[operator]
        rows = max(1, _CHUNK_ELEMENTS // head.out_features)
        if len(position) <= rows:
            return self._score(head, selected, target, entropy_gradient, proxy_kappa)
        chunks = [
            checkpoint(self._score, head, *part, entropy_gradient, proxy_kappa, use_reentrant=False)
            for part in zip(torch.split(selected, rows), torch.split(target, rows), strict=True)
        ]
        return tuple(torch.cat(parts) for parts in zip(*chunks, strict=True))

    def _score(
        self, head: nn.Module, hidden: Tensor, target: Tensor, entropy_gradient: bool, proxy_kappa: float | None
    ) -> tuple[Tensor, ...]:
        logits = head(hidden).float() / self._temperature
        logprobs = functional.log_softmax(logits, dim=-1)
        with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
            # A token of probability 0 adds nothing, though its log-prob is minus infinity.
            entropy = -(logprobs.exp() * logprobs.clamp_min(torch.finfo(torch.float32).min)).sum(-1)
        logprob = logprobs.gather(-1, target[:, None]).squeeze(-1)
        if proxy_kappa is None:
            return logprob, entropy
        return logprob, entropy, _proxy(logprobs.detach(), logprob.detach(), proxy_kappa)


def _proxy(logprobs: Tensor, logprob: Tensor, kappa: float) -> Tensor:
    """Log-prob [N] of the sampled tokens under the min-p filtered, renormalised `logprobs` [N, V]."""
    least = logprobs.amax(-1) + math.log(kappa)
    kept = logprobs.masked_fill(logprobs < least[:, None], -torch.inf).logsumexp(-1)
    return (logprob - kept).masked_fill(logprob < least, -torch.inf)
