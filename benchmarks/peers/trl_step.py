"""TRL's GRPOTrainer on the embedded policy: 32 prompts x 8 samples, one update; prints its step times as JSON."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from maspo_rl.data import arithmetic, embedded_policy_path


class _Clock(TrainerCallback):
    """Time from the end of one step to the end of the next."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
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


def main() -> None:
    """Trains and prints `{"step_s": [...]}`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    steps = parser.parse_args().steps
    torch.set_num_threads(2)
    problems = arithmetic.distinct([2], "train", 0, 4000)
    rows = [{"prompt": [{"role": "user", "content": item.text}], "gold": item.gold} for item in problems]
    clock = _Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(embedded_policy_path(), dtype=torch.float32),
            processing_class=AutoTokenizer.from_pretrained(embedded_policy_path(), padding_side="left"),
            reward_funcs=_reward,
            train_dataset=Dataset.from_list(rows),
            callbacks=[clock],
            args=GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=256,
                num_generations=8,
                max_completion_length=24,
                learning_rate=1e-9,
                max_steps=steps,
                bf16=False,
                gradient_checkpointing=False,
                use_cpu=True,
                report_to="none",
                save_strategy="no",
                logging_steps=1000,
                disable_tqdm=True,
            ),
        )
        trainer.train()
    print(json.dumps({"step_s": clock.seconds}))


if __name__ == "__main__":
    main()
