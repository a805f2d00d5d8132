"""What each objective costs: forward and backward of a million tokens beside plain -A r; as JSON lines.

`times_plain`: its fastest repetition over plain's fastest, the two taking turns, on one batch of all tokens;
`times_plain_micro`: in micro-batches of the learner's default size, where calls cost more than numbers.
`floats_per_token`: most float32 values per token alive at a time, beyond the input and its gradient.
All in the memory settings of a learner's process (`KEEP_MEMORY`), which the C library reads when a process starts.
`observe_ms`: the statistics over the step that some objectives take first. `diagnostics`: what the always-on metrics of
a step add.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from maspo_rl.cluster.placement import KEEP_MEMORY
from maspo_rl.config.schema import LearnerConfig
from maspo_rl.objectives import build, catalogue
from maspo_rl.objectives.base import Objective
from maspo_rl.objectives.diagnostics import diagnose
from maspo_rl.types import TokenBatch, Totals


def tokens(count: int, seed: int) -> TokenBatch:
    """Tokens of responses of 1000, most of them probable, a few updates off policy."""
    generator = torch.Generator().manual_seed(seed)
    sequence = torch.arange(count) // 1000
    sequences = int(sequence[-1]) + 1
    old = -(torch.rand(len(sequence), generator=generator) ** 8) * 5
    live = (old + 0.1 * torch.randn(len(sequence), generator=generator)).clamp(max=0)
    return TokenBatch(
        logprob=live,
        old_logprob=old,
        rollout_logprob=old,
        advantage=torch.randn(sequences, generator=generator)[sequence],
        sequence=sequence,
        group=torch.arange(sequences) // 8,
        totals=Totals(len(sequence), sequences),
        proxy_logprob=old + 0.01,
    )


class PeakMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Most bytes of storages made inside, alive at a time."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, Tensor):
                self._track(value.untyped_storage())
        return result

    def _track(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
        weakref.finalize(storage, self._release, key, size)

    def _release(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.bytes -= size


def fastest(repetitions: int, *candidates: Callable[[], object]) -> list[float]:
    """Milliseconds of each candidate's fastest repetition; they take turns, so that other load hits all of them."""
    best = [float("inf")] * len(candidates)
    for _ in range(repetitions):
        for index, candidate in enumerate(candidates):
            start = time.perf_counter()
            candidate()
            best[index] = min(best[index], 1000 * (time.perf_counter() - start))
    return best


def run(loss_of: Callable[[TokenBatch], Tensor], batches: list[TokenBatch]) -> None:
    """Forward and backward of all batches."""
    for batch in batches:
        live = batch.logprob.detach().requires_grad_()
        loss_of(replace(batch, logprob=live)).sum().backward()  # type: ignore[no-untyped-call]


def plain(batch: TokenBatch) -> Tensor:
    """-A r."""
    return -batch.advantage * (batch.logprob - batch.old_logprob).exp()


def cost(objective: Objective, batches: list[TokenBatch], repetitions: int) -> dict[str, float]:
    """The row of one objective."""
    whole = tokens(sum(len(batch.logprob) for batch in batches), seed=0)

    def observe() -> Any:
        return objective.observe(whole, lambda tensor, operation: tensor) if objective.needs_step else None

    found = observe()

    def loss_of(batch: TokenBatch) -> Tensor:
        return objective.token_loss(batch, found).loss

    own, reference, micro, micro_reference = fastest(
        repetitions,
        *(lambda: run(loss_of, [whole]), lambda: run(plain, [whole])),
        *(lambda: run(loss_of, batches), lambda: run(plain, batches)),
    )
    with PeakMemory() as memory:
        run(loss_of, [whole])
    row = {
        "ms": own,
        "times_plain": own / reference,
        "times_plain_micro": micro / micro_reference,
        "floats_per_token": memory.peak / 4 / len(whole.logprob) - 1,
    }
    return row | ({"observe_ms": fastest(3, observe)[0]} if objective.needs_step else {})


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="objectives; all if none is named")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--micro-batch", type=int, default=LearnerConfig().micro_batch_tokens)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if not KEEP_MEMORY.items() <= os.environ.items():
        os.execve(
            sys.executable, [sys.executable, "-m", "benchmarks.objectives", *sys.argv[1:]], os.environ | KEEP_MEMORY
        )
    torch.set_num_threads(options.threads)
    batches = [tokens(options.micro_batch, seed) for seed in range(-(-options.tokens // options.micro_batch))]
    for name in options.names or catalogue():
        row = cost(build(name), batches, options.repetitions)
        print(json.dumps({"objective": name} | {key: round(value, 2) for key, value in row.items()}), flush=True)
    losses = [build("maspo").token_loss(batch) for batch in batches]
    weight = torch.ones(())

    def diagnostics() -> None:
        for batch, loss in zip(batches, losses, strict=True):
            diagnose(batch, loss.ratio, loss.slope, weight)

    own, reference = fastest(options.repetitions, diagnostics, lambda: run(plain, batches))
    print(json.dumps({"diagnostics": True, "ms": round(own, 2), "times_plain": round(own / reference, 2)}))


if __name__ == "__main__":
    main()
