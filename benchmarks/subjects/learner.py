"""`benchmarks.learner`: one update of a learner rank, and of a plain loop, on the same rows."""

from __future__ import annotations

import argparse
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks import measure
from benchmarks.subjects.rows import sequence_batch, spread_lengths
from maspo_rl.assembly import learner_settings
from maspo_rl.config.derived import compute_dtype
from maspo_rl.config.load import load
from maspo_rl.config.schema import Config
from maspo_rl.data import load_tokenizer
from maspo_rl.learner import LearnerSettings, SequenceBatch
from maspo_rl.learner.rank import LearnerRank


def configuration(options: argparse.Namespace, *overrides: str) -> Config:
    """A run with one update a step, by the objective that the plain loop has too."""
    return load(
        [
            "algorithm=grpo",
            f"model.path={options.model}",
            f"model.dtype={options.dtype}",
            f"learner.micro_batch_tokens={options.micro_batch_tokens}",
            "trainer.updates_per_step=1",
            "weights.max_logprob_gap=1000",  # the rows were sampled by nobody
            *overrides,
        ]
    )


def start_rank(settings: LearnerSettings) -> LearnerRank:
    """A learner rank in this process, the only one of its group."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # A rank sends all that its process prints to its log, and DeepSpeed prints; what is printed after are figures.
    printed = os.dup(1)
    rank = LearnerRank(settings, 0, measure.THREADS, Path("/dev/stderr"))
    rank.start("127.0.0.1", port)
    os.dup2(printed, 1)
    return rank


def started_rank(options: argparse.Namespace, *overrides: str) -> LearnerRank:
    """Of the configuration above."""
    config = configuration(options, *overrides)
    return start_rank(learner_settings(config, load_tokenizer(config.model.path)))


def ours(options: argparse.Namespace) -> measure.Figures:
    """One step of a learner rank."""
    checkpointing = f"learner.gradient_checkpointing={options.checkpointing}"
    return timed(options, started_rank(options, checkpointing).step)


def plain(options: argparse.Namespace) -> measure.Figures:
    """One update of the plain loop."""
    config = configuration(options)
    torch.set_num_threads(measure.THREADS)
    dtype = getattr(torch, compute_dtype(config.model, config.cluster))
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=dtype, attn_implementation="sdpa")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)

    def update(batch: SequenceBatch) -> None:
        inside = np.arange(batch.lengths.max()) < batch.lengths[:, None]
        token_ids = np.zeros(inside.shape, np.int64)
        token_ids[inside] = batch.token_ids
        response = inside & (np.arange(inside.shape[1]) >= batch.prompt_length[:, None])
        for rows in np.array_split(np.arange(len(token_ids)), -(-len(token_ids) // options.plain_rows)):
            ids, mask = torch.from_numpy(token_ids[rows]), torch.from_numpy(inside[rows].astype(np.int64))
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1].float()
            logprob = torch.log_softmax(logits, dim=-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
            ratio = (logprob - logprob.detach()).exp()
            kept = torch.from_numpy(response[rows][:, 1:])
            loss = -(ratio * torch.from_numpy(batch.advantage[rows])[:, None] * kept).sum() / response.sum()
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    return timed(options, update)


def timed(options: argparse.Namespace, update: Callable[[SequenceBatch], object]) -> measure.Figures:
    """The second of two updates, after one of two short rows that makes the gradients and moments that stand from then
    on: a run makes hundreds, and the first finds no memory at hand."""
    vocabulary = AutoConfig.from_pretrained(options.model).vocab_size
    lengths = spread_lengths(options.rows, options.mean) if options.lengths == "spread" else [256] * 8
    batch = sequence_batch(lengths, vocabulary, options.prompt, options.samples)
    update(sequence_batch([8, 8], vocabulary))
    standing = measure.resident_bytes()
    update(batch)
    started = time.perf_counter()
    update(batch)
    seconds = time.perf_counter() - started
    return {
        "tokens": sum(lengths),
        "padded_tokens": max(lengths) * len(lengths),
        "seconds": round(seconds, 2),
        "tokens_per_s": round(sum(lengths) / seconds, 1),
        "standing_gib": round(standing / measure.GIB, 2),
    }
