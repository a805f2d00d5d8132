"""`benchmarks.transfer`: the weights from learner to engine, and from memory to memory."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks import measure
from maspo_rl.assembly import running_stack
from maspo_rl.config.derived import compute_dtype
from maspo_rl.config.load import load
from maspo_rl.config.schema import Config
from maspo_rl.report.run_directory import RunDirectory


def configuration(options: argparse.Namespace) -> Config:
    """The smallest run that has a learner and an engine."""
    return load([f"model.path={options.model}", "data.max_prompt_tokens=64", "rollout.max_new_tokens=64"])


def transfer(options: argparse.Namespace) -> measure.Figures:
    """Learner to engine."""
    config = configuration(options)
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory(Path(folder))
        directory.create()
        with running_stack(config, AutoTokenizer.from_pretrained(options.model), directory) as stack:
            versions = iter(range(1, options.transfers + 2))
            return timed(options, lambda: stack.publish(next(versions)))


def copy(options: argparse.Namespace) -> measure.Figures:
    """Memory to memory."""
    weights = parameters(options)
    pairs = [(torch.zeros_like(source), source) for source in weights]

    def once() -> None:
        for target, source in pairs:
            target.copy_(source)

    return timed(options, once) | size(weights)


def copy_into_new_memory(options: argparse.Namespace) -> measure.Figures:
    """Memory to memory that is not there yet."""
    weights = parameters(options)
    return timed(options, lambda: [source.clone() for source in weights]) | size(weights)


def parameters(options: argparse.Namespace) -> list[torch.Tensor]:
    """The policy's, in the run's number format."""
    config = configuration(options)
    torch.set_num_threads(measure.THREADS)
    dtype = getattr(torch, compute_dtype(config.model, config.cluster))
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=dtype)
    return [parameter.detach() for parameter in model.parameters()]


def size(weights: list[torch.Tensor]) -> measure.Figures:
    """Of all of them."""
    return {"gib": round(sum(source.nbytes for source in weights) / measure.GIB, 3)}


def timed(options: argparse.Namespace, once: Callable[[], object]) -> measure.Figures:
    """The first touches pages that the others find."""
    once()
    seconds = []
    for _ in range(options.transfers):
        started = time.perf_counter()
        once()
        seconds.append(time.perf_counter() - started)
    return {"seconds": round(statistics.median(seconds), 4), "slowest_s": round(max(seconds), 4)}
