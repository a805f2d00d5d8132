"""TRL's GRPOTrainer: prompts x 8 samples of procedural arithmetic a step, one update."""

from __future__ import annotations

import argparse
import tempfile
import time
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from benchmarks import measure
from benchmarks.subjects.step import SAMPLES, figures
from maspo_rl.config.derived import compute_dtype
from maspo_rl.config.schema import ClusterConfig, ModelConfig
from maspo_rl.data import arithmetic, resolve_model


class _Clock(TrainerCallback):
    """Time from the end of one step, or from the beginning, to the end of the next."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._last = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        now = time.perf_counter()
        self.seconds.append(now - self._last)
        self._last = now


def _reward(completions: list[Any], gold: list[str], **_: Any) -> list[float]:
    return [
        float(f"\\boxed{{{answer}}}" in completion[0]["content"])
        for completion, answer in zip(completions, gold, strict=True)
    ]


def train(options: argparse.Namespace) -> measure.Figures:
    """Trains, and states the steps after the warm-up."""
    torch.set_num_threads(measure.THREADS)
    problems = arithmetic.distinct([2], "train", 0, 4000)
    rows = [{"prompt": [{"role": "user", "content": item.text}], "gold": item.gold} for item in problems]
    clock = _Clock()
    model = resolve_model(options.model)
    dtype = compute_dtype(ModelConfig(options.model), ClusterConfig())
    weights = dtype if options.peer_weights == "auto" else options.peer_weights
    completions = options.prompts * SAMPLES
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            processing_class=AutoTokenizer.from_pretrained(model, padding_side="left"),
            reward_funcs=_reward,
            train_dataset=Dataset.from_list(rows),
            callbacks=[clock],
            args=GRPOConfig(
                output_dir=folder,
                seed=options.seed,
                per_device_train_batch_size=options.peer_rows,
                gradient_accumulation_steps=completions // options.peer_rows,
                num_generations=SAMPLES,
                max_completion_length=options.max_new_tokens,
                learning_rate=1e-9,
                max_steps=options.steps + options.warm_up,
                model_init_kwargs={"dtype": weights},
                bf16=dtype != weights,
                gradient_checkpointing=False,
                use_cpu=True,
                report_to="none",
                save_strategy="no",
                logging_steps=1,
                disable_tqdm=True,
            ),
        )
        trainer.train()
    lengths = [row["completions/mean_length"] for row in trainer.state.log_history if "completions/mean_length" in row]
    return figures(clock.seconds[options.warm_up :], lengths[options.warm_up :], completions)
