"""The real stack, started once for all tests here: Ray, a vLLM engine, a DeepSpeed learner, the embedded policy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from stack import RunningStack, quickstart

from maspo_rl.assembly import running_stack
from maspo_rl.cluster.faults import VARIABLE
from maspo_rl.data import load_prompts, load_tokenizer
from maspo_rl.report.run_directory import RunDirectory


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """Engine and learner of the quickstart, 8 prompts x 4 samples and two updates; faults on order."""
    path: Path = tmp_path_factory.mktemp("stack")
    config = quickstart(
        path, "trainer.prompts_per_step=8", "rollout.samples_per_prompt=4", "trainer.updates_per_step=2"
    )
    directory = RunDirectory(path / "shared")
    directory.create()
    tokenizer = load_tokenizer(config.model.path)
    prompts = load_prompts(config.data, tokenizer, split="train", limit=64)
    orders = path / "faults.json"
    orders.write_text("[]")
    os.environ[VARIABLE] = str(orders)
    with running_stack(config, tokenizer, directory) as parts:
        yield RunningStack(config, parts, list(prompts), tokenizer.eos_token_id, orders)
