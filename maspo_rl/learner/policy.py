"""The policy as the learner sees it: token ids in, log-probs of the sampled tokens out."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from maspo_rl.learner.logprob import score_tokens


class Policy(nn.Module):
    """A causal language model whose head is applied to response tokens only, and gives their scores, not logits."""

    def __init__(self, model: nn.Module, temperature: float) -> None:
        super().__init__()
        self.model = model
        self._temperature = temperature
        # ZeRO-3 has the head's weights together while its forward runs, and again for the backward of what that gave.
        head = model.get_output_embeddings()  # type: ignore[operator]
        head.forward = lambda *tensors, **options: _score(head, *tensors, **options)

    def forward(
        self, input_ids: Tensor, position: Tensor, target: Tensor, entropy_gradient: bool, proxy_kappa: float | None
    ) -> tuple[Tensor, ...]:
        """(log-prob[N], entropy[N]) in nats at the sampling temperature, float32; with a kappa, proxy log-prob[N] too.

        `input_ids[B, T]` is padded on the right; `position[N]` indexes the flattened [B*T]. The entropy carries a
        gradient only if asked for, the proxy never: it is the policy without the tokens below `proxy_kappa` times the
        largest probability (`TokenBatch.proxy_logprob`).
        """
        hidden = self.model.get_decoder()(input_ids=input_ids, use_cache=False).last_hidden_state  # type: ignore[operator]
        scores: tuple[Tensor, ...] = self.model.get_output_embeddings()(  # type: ignore[operator]
            hidden.flatten(0, 1)[position],
            target,
            temperature=self._temperature,
            entropy_gradient=entropy_gradient,
            proxy_kappa=proxy_kappa,
        )
        return scores


def _score(head: Any, hidden: Tensor, target: Tensor, **options: Any) -> tuple[Tensor, ...]:
    return score_tokens(hidden, head.weight, head.bias, target, **options)
