"""A catalogue as the command line hands it over, with a policy of known limits, and a run that passes every check."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from maspo_rl import advantages
from maspo_rl.config.check import Catalogue
from maspo_rl.config.load import load
from maspo_rl.config.schema import Config
from maspo_rl.objectives.compose import build_policy_loss


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """The real algorithms, and a policy of 128 positions and 3 heads."""
    policy = tmp_path / "policy"
    policy.mkdir()
    (policy / "config.json").write_text(json.dumps({"max_position_embeddings": 128, "num_attention_heads": 3}))
    return Catalogue(build_policy_loss, advantages.build, embedded_policy=policy)


@pytest.fixture(scope="session")
def composed() -> Config:
    """A small run on CPUs: 8 prompts x 4 responses, prompts and responses of at most 32 tokens."""
    return load(
        [
            "run.name=small",
            "data.max_prompt_tokens=32",
            "rollout.max_new_tokens=32",
            "rollout.samples_per_prompt=4",
            "trainer.prompts_per_step=8",
        ]
    )


@pytest.fixture
def change(composed: Config, tmp_path: Path) -> Callable[..., Config]:
    """The small run, in a directory of the test's own, with the given `key=value` laid over it."""

    def change(*overrides: str) -> Config:
        changes = OmegaConf.from_dotlist([f"run.dir={tmp_path / 'runs'}", *overrides])
        config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(composed), changes))
        assert isinstance(config, Config)
        return config

    return change
