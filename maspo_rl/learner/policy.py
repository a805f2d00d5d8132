"""The policy as the learner sees it: packed token ids in, log-probs of the sampled tokens out."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import embedding

from maspo_rl.learner.attention import Packing
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
        self,
        token_ids: Tensor,
        position: Tensor,
        packing: Packing,
        source: Tensor,
        target: Tensor,
        entropy_gradient: bool,
        proxy_kappa: float | None,
    ) -> tuple[Tensor, ...]:
        """(log-prob[N], entropy[N]) in nats at the sampling temperature, float32; with a kappa, proxy log-prob[N] too.

        `token_ids[T]`, `position[T]`, `packing`, `source[N]` and `target[N]` are those of a `MicroBatch`. The entropy
        carries a gradient only if asked for, the proxy never: it is the policy without the tokens below `proxy_kappa`
        times the largest probability (`TokenBatch.proxy_logprob`).
        """
        hidden = self.model.get_decoder()(  # type: ignore[operator]
            input_ids=token_ids[None],
            position_ids=position[None],
            use_cache=False,
            packing=packing.masked(),
        ).last_hidden_state[0]
        scores: tuple[Tensor, ...] = self.model.get_output_embeddings()(  # type: ignore[operator]
            embedding(source, hidden),
            target,
            temperature=self._temperature,
            entropy_gradient=entropy_gradient,
            proxy_kappa=proxy_kappa,
        )
        return scores


def _score(head: Any, hidden: Tensor, target: Tensor, **options: Any) -> tuple[Tensor, ...]:
    return score_tokens(hidden, head.weight, head.bias, target, **options)
