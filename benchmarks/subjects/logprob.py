"""`benchmarks.logprob`: forward and backward of a head alone."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from benchmarks import measure
from maspo_rl.learner.attention import Piece, pack
from maspo_rl.learner.policy import Policy

WARM_UP_TOKENS = 64


class HeadAlone(nn.Module):
    """A model whose decoder knows its hidden states already."""

    def __init__(self, hidden: Tensor, head: nn.Linear) -> None:
        super().__init__()
        self.hidden = nn.Parameter(hidden)
        self.head = head

    def get_decoder(self) -> Callable[..., SimpleNamespace]:
        return lambda **_: SimpleNamespace(last_hidden_state=self.hidden[None])

    def get_output_embeddings(self) -> nn.Linear:
        return self.head


def our_logprob(model: HeadAlone, target: Tensor) -> Tensor:
    """Through `Policy`."""
    each = torch.arange(len(target), device=target.device)
    packing = pack([Piece(0, len(target))], target.device, model.hidden.dtype)
    return Policy(model, temperature=1.0)(target, each, packing, each, target, False, None)[0]


def naive_logprob(model: HeadAlone, target: Tensor) -> Tensor:
    """All logits at once."""
    logits = nn.functional.linear(model.hidden, model.head.weight).float()
    return torch.log_softmax(logits, dim=-1).gather(-1, target[:, None]).squeeze(-1)


def ours(options: argparse.Namespace) -> measure.Figures:
    """Without logits of all tokens."""
    return measured(options, our_logprob)


def naive(options: argparse.Namespace) -> measure.Figures:
    """With them."""
    return measured(options, naive_logprob)


def measured(options: argparse.Namespace, logprob: Callable[[HeadAlone, Tensor], Tensor]) -> measure.Figures:
    """Forward and backward once, after a few tokens have warmed up the kernels."""
    torch.set_num_threads(measure.THREADS)
    torch.manual_seed(0)
    tokens, vocabulary, width = (int(number) for number in options.size.split(":"))
    dtype = getattr(torch, options.dtype)
    head = nn.Linear(width, vocabulary, bias=False, dtype=dtype)
    run(HeadAlone(torch.randn(WARM_UP_TOKENS, width, dtype=dtype), head), logprob)
    head.weight.grad = None
    model = HeadAlone(torch.randn(tokens, width, dtype=dtype), head)
    measure.forget_peak()
    inputs = measure.resident_bytes()
    started = time.perf_counter()
    run(model, logprob)
    seconds = time.perf_counter() - started
    gradients = sum(parameter.nbytes for parameter in model.parameters())
    return {
        "seconds": round(seconds, 3),
        "microseconds_per_token": round(1e6 * seconds / tokens, 1),
        "above_inputs_gib": round((measure.peak_bytes() - inputs) / measure.GIB, 3),
        "gradients_gib": round(gradients / measure.GIB, 3),
    }


def run(model: HeadAlone, logprob: Callable[[HeadAlone, Tensor], Tensor]) -> None:
    """Forward and backward of all tokens, each with another weight."""
    target = torch.randint(model.head.out_features, (len(model.hidden),))
    weight = torch.linspace(-1, 1, len(target))
    (logprob(model, target) * weight).sum().backward()
