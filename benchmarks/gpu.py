"""The learner's own parts on a GPU: achieved against measured peak, as JSON lines.

    python -m benchmarks.gpu                       # one NVIDIA GPU, about two minutes
    python -m benchmarks.gpu --device cpu --tiny   # the same code on tiny shapes, to see that it runs

First what the device does at best: a matrix product, and a copy in its memory. Then log-probs at the size of a Qwen
head beside all logits at once and beside the same blocks by torch's operators (on a CPU they are ours), with what each
takes in our time and how far its results are from ours; packed attention, the same against buckets; every objective on
a million tokens; and `LearnerRank.step` of a random model of the shape of Qwen2.5-0.5B, on rows of equal lengths and of
log-normal lengths (which padding would make dearer a token). `share_of_peak` counts useful work alone: 6 operations
per parameter and token and the attention's, or the bytes that any implementation must read and write.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from transformers import Qwen2Config, Qwen2ForCausalLM

from benchmarks import measure
from benchmarks.objectives import run as run_objective
from benchmarks.objectives import tokens as objective_tokens
from benchmarks.subjects.learner import start_rank
from benchmarks.subjects.logprob import HeadAlone, naive_logprob, our_logprob
from benchmarks.subjects.rows import SAMPLES, sequence_batch, spread_lengths
from maspo_rl.config.load import load
from maspo_rl.learner import LearnerSettings
from maspo_rl.learner.attention import Buckets, Packing, Piece, pack
from maspo_rl.learner.logprob import TorchChunk
from maspo_rl.objectives import build, catalogue
from maspo_rl.objectives.base import Objective
from maspo_rl.types import TokenBatch

# Values that an objective's forward and backward move at least, per token: live, old and advantage in, gradient out.
OBJECTIVE_VALUES = 4


@dataclass(frozen=True)
class Shapes:
    """What is measured. The first are those of Qwen2.5-0.5B."""

    vocabulary: int = 151_936
    hidden: int = 896
    intermediate: int = 4864
    layers: int = 24
    heads: int = 14
    key_value_heads: int = 2
    product: int = 8192
    copied: int = 1 << 30
    head_tokens: int = 16_384
    objective_tokens: int = 1_000_000
    rows: int = 128
    row_tokens: int = 512
    micro_batch_tokens: int = 32_768


TINY = Shapes(
    vocabulary=512,
    hidden=64,
    intermediate=128,
    layers=2,
    heads=2,
    key_value_heads=1,
    product=256,
    copied=1 << 20,
    head_tokens=256,
    objective_tokens=4000,
    rows=8,
    row_tokens=32,
    micro_batch_tokens=256,
)


class Device:
    """A device, its clock, and what it does at best."""

    def __init__(self, name: str, shapes: Shapes) -> None:
        self.device = torch.device(name)
        self.dtype = torch.bfloat16 if self.on_gpu else torch.float32
        one = torch.randn(shapes.product, shapes.product, device=self.device, dtype=self.dtype)
        self.operations_per_s = 2 * shapes.product**3 / self.fastest(lambda: one @ one)
        source = torch.empty(shapes.copied, dtype=torch.uint8, device=self.device)
        target = torch.empty_like(source)
        self.bytes_per_s = 2 * shapes.copied / self.fastest(lambda: target.copy_(source))

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    def fastest(self, work: Callable[[], object], repetitions: int = 5) -> float:
        """Seconds of the fastest repetition, after one that warms up."""
        best = float("inf")
        for number in range(repetitions + 1):
            self._wait()
            started = time.perf_counter()
            work()
            self._wait()
            if number:
                best = min(best, time.perf_counter() - started)
        return best

    def peak_gib_of(self, work: Callable[[], object]) -> float | None:
        """Memory that `work` takes beyond what is there; None on a CPU."""
        if not self.on_gpu:
            return None
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return round((torch.cuda.max_memory_allocated() - before) / measure.GIB, 3)

    def _wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()


def main() -> None:
    """Prints the device's best, then a line for each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--tiny", action="store_true", help="shapes that a CPU does in seconds")
    options = parser.parse_args()
    shapes = TINY if options.tiny else Shapes()
    device = Device(options.device, shapes)
    name = torch.cuda.get_device_name() if device.on_gpu else "cpu"
    best = {"tflop_per_s": round(device.operations_per_s / 1e12, 3), "gb_per_s": round(device.bytes_per_s / 1e9, 1)}
    measure.emit({"benchmark": "gpu", "part": "peak", "device": name, **best})
    log_probs(device, shapes)
    attention(device, shapes)
    objectives(device, shapes)
    learner(device, shapes)


def log_probs(device: Device, shapes: Shapes) -> None:
    """Forward and backward of the head: three products of tokens x hidden size x vocabulary."""
    head = torch.nn.Linear(shapes.hidden, shapes.vocabulary, bias=False, device=device.device, dtype=device.dtype)
    model = HeadAlone(torch.randn(shapes.head_tokens, shapes.hidden, device=device.device, dtype=device.dtype), head)
    target = torch.randint(shapes.vocabulary, (shapes.head_tokens,), device=device.device)
    passes = {
        "maspo_rl": partial(head_pass, model, target, our_logprob),
        "operators": partial(operators_pass, model, target),
        "naive": partial(head_pass, model, target, naive_logprob),
    }
    ours, our_seconds = passes["maspo_rl"](), device.fastest(passes["maspo_rl"])
    for subject, work in passes.items():
        memory = device.peak_gib_of(work)
        seconds = our_seconds if subject == "maspo_rl" else device.fastest(work)
        share = 6 * shapes.head_tokens * shapes.hidden * shapes.vocabulary / seconds / device.operations_per_s
        row = {"benchmark": "gpu", "part": "log_probs", "subject": subject, "tokens": shapes.head_tokens}
        row |= {"seconds": round(seconds, 5), "share_of_peak": round(share, 3), "above_gib": memory}
        logprobs, *gradients = [theirs - mine for theirs, mine in zip(work(), ours, strict=True)]
        apart = [float(difference.norm() / mine.norm()) for difference, mine in zip(gradients, ours[1:], strict=True)]
        row |= {"logprobs_apart": float(logprobs.abs().max()), "gradients_apart": apart}
        measure.emit(row | {"times_ours": round(seconds / our_seconds, 2)})


def head_pass(
    model: HeadAlone, target: Tensor, logprob: Callable[[HeadAlone, Tensor], Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Forward and backward, and no gradients left: log-probs, and their sum's gradients by hidden states and weight."""
    scores = logprob(model, target)
    return scores.detach(), *torch.autograd.grad(scores.sum(), (model.hidden, model.head.weight))


def operators_pass(model: HeadAlone, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Ours as it is on devices that there are no kernels for."""
    with mock.patch("maspo_rl.learner.logprob.chunk_type", return_value=TorchChunk):
        return head_pass(model, target, our_logprob)


def attention(device: Device, shapes: Shapes) -> None:
    """Forward and backward of one layer's packed attention, of groups that share a prompt: by the device's own kernel,
    and in buckets, as any device can."""
    pieces, end = list[Piece](), 0
    lengths = spread_lengths(shapes.rows, shapes.row_tokens)
    prompt = min(lengths)
    for number, length in enumerate(lengths):
        if number % SAMPLES == 0:
            pieces.append(Piece(end, prompt))
            begin, end = end, end + prompt
        pieces.append(Piece(end, length, begin, prompt))
        end += length
    width = shapes.hidden // shapes.heads
    sizes = [(end, heads, width) for heads in (shapes.heads, shapes.key_value_heads, shapes.key_value_heads)]
    tensors = [torch.randn(size, device=device.device, dtype=device.dtype, requires_grad=True) for size in sizes]
    pairs = sum(piece.length * (piece.prefix_length + piece.length / 2) for piece in pieces)
    operations = 3 * 4 * shapes.heads * width * pairs  # two products forward, four backward
    packings = {
        "maspo_rl": pack(pieces, device.device, device.dtype),
        "buckets": Buckets.of(pieces, device.device, device.dtype),
    }
    ours = attention_pass(packings["maspo_rl"], tensors)
    for subject, packing in packings.items():
        seconds = device.fastest(partial(attention_pass, packing, tensors))
        row = {"benchmark": "gpu", "part": "attention", "subject": subject, "tokens": end}
        row |= {"seconds": round(seconds, 5), "share_of_peak": operations / seconds / device.operations_per_s}
        found = attention_pass(packing, tensors)
        apart = [float((theirs - mine).norm() / mine.norm()) for theirs, mine in zip(found, ours, strict=True)]
        measure.emit(row | {"output_and_gradients_apart": apart})


def attention_pass(packing: Packing, tensors: list[Tensor]) -> tuple[Tensor, ...]:
    """The output, and its sum's gradients by queries, keys and values."""
    output = packing.masked().attend(*tensors, tensors[0].shape[-1] ** -0.5)
    return output.detach(), *torch.autograd.grad(output.sum(), tensors)


def objectives(device: Device, shapes: Shapes) -> None:
    """Forward and backward of every objective on one batch."""
    batch = on_device(objective_tokens(shapes.objective_tokens, seed=0), device.device)
    floor = OBJECTIVE_VALUES * batch.logprob.element_size() * len(batch.logprob) / device.bytes_per_s
    for name in catalogue():
        objective = build(name)
        observed = objective.observe(batch, lambda tensor, _: tensor) if objective.needs_step else None
        seconds = device.fastest(partial(run_objective, partial(token_loss, objective, observed), [batch]))
        row = {"benchmark": "gpu", "part": "objective", "objective": name, "ms": round(1e3 * seconds, 3)}
        measure.emit(row | {"share_of_peak": round(floor / seconds, 3)})


def token_loss(objective: Objective, observed: Any, batch: TokenBatch) -> Tensor:
    """Without the metrics."""
    return objective.token_loss(batch, observed).loss


def learner(device: Device, shapes: Shapes) -> None:
    """A learner's update of a random model."""
    config = Qwen2Config(
        vocab_size=shapes.vocabulary,
        hidden_size=shapes.hidden,
        intermediate_size=shapes.intermediate,
        num_hidden_layers=shapes.layers,
        num_attention_heads=shapes.heads,
        num_key_value_heads=shapes.key_value_heads,
        tie_word_embeddings=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        model = Qwen2ForCausalLM(config).to(device.dtype)
        parameters = model.num_parameters()
        model.save_pretrained(folder)
        rank = start_rank(settings(folder, device, shapes))
    lengths = {
        "equal": [shapes.row_tokens] * shapes.rows,
        "spread": spread_lengths(shapes.rows, shapes.row_tokens),
    }
    for kind, rows in lengths.items():
        batch = sequence_batch(rows, shapes.vocabulary)
        step = partial(rank.step, batch)
        memory = device.peak_gib_of(step)
        seconds = device.fastest(step, repetitions=3)
        attention = sum(6 * shapes.layers * shapes.hidden * length**2 for length in rows)
        share = (6 * parameters * sum(rows) + attention) / seconds / device.operations_per_s
        figures = {"tokens": sum(rows), "tokens_per_s": round(sum(rows) / seconds), "share_of_peak": round(share, 3)}
        measure.emit({"benchmark": "gpu", "part": "learner", "lengths": kind, **figures, "above_gib": memory})


def settings(model: str, device: Device, shapes: Shapes) -> LearnerSettings:
    """A learner rank for rows that nobody sampled."""
    config = load(["algorithm=maspo", f"learner.micro_batch_tokens={shapes.micro_batch_tokens}"])
    return LearnerSettings(
        model=model,
        revision=None,
        dtype=str(device.dtype).removeprefix("torch."),
        temperature=1.0,
        pad_token_id=0,
        updates_per_step=1,
        total_updates=1,
        max_logprob_gap=float("inf"),
        algorithm=config.algorithm,
        learner=config.learner,
        optimizer=config.optimizer,
        guards=config.guards,
        on_gpu=device.on_gpu,
    )


def on_device(batch: TokenBatch, device: torch.device) -> TokenBatch:
    """The same batch there."""
    tensors = {item.name: getattr(batch, item.name) for item in fields(batch)}
    return replace(batch, **{name: value.to(device) for name, value in tensors.items() if isinstance(value, Tensor)})


if __name__ == "__main__":
    main()
