"""A catalogue as the command line hands it over, with a policy of known limits, and a run that passes every check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maspo_rl import advantages
from maspo_rl.config.check import Catalogue
from maspo_rl.objectives.compose import build_policy_loss


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """The real algorithms, and a policy of 128 positions and 3 heads."""
    policy = tmp_path / "policy"
    policy.mkdir()
    (policy / "config.json").write_text(json.dumps({"max_position_embeddings": 128, "num_attention_heads": 3}))
    return Catalogue(build_policy_loss, advantages.build, embedded_policy=policy)


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """Overrides of a run that passes every check."""
    return [
        f"run.dir={tmp_path / 'runs'}",
        "data.max_prompt_tokens=32",
        "rollout.max_new_tokens=32",
        "rollout.samples_per_prompt=4",
        "trainer.prompts_per_step=8",
    ]
