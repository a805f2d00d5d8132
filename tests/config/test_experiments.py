"""Every experiment composes and passes every check, without a GPU, a network or Ray."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maspo_rl import advantages
from maspo_rl.config.check import Catalogue, check
from maspo_rl.config.keys import choices
from maspo_rl.config.load import load
from maspo_rl.data import embedded_policy_path
from maspo_rl.objectives.compose import build_policy_loss


@pytest.fixture
def directories(tmp_path: Path) -> list[str]:
    """Overrides that keep the run and the exported model out of the clone."""
    return [f"run.dir={tmp_path / 'runs'}"]


def exported(tmp_path: Path) -> str:
    """A directory as the scripts leave it, as far as the checks read it: with SmolLM2-135M's own limits."""
    description = {"max_position_embeddings": 8192, "num_attention_heads": 9}
    (tmp_path / "config.json").write_text(json.dumps(description))
    return f"model.path={tmp_path}"


@pytest.mark.parametrize("algorithm", ["maspo", "grpo", "dapo"])
@pytest.mark.parametrize("experiment", choices("experiment"))
def test_an_experiment_passes_every_check(
    experiment: str, algorithm: str, directories: list[str], tmp_path: Path
) -> None:
    overrides = [f"experiment={experiment}", f"algorithm={algorithm}", *directories]
    if experiment in ("smollm2_gsm8k", "embedded_policy"):
        overrides.append(exported(tmp_path))
    catalogue = Catalogue(build_policy_loss, advantages.build, embedded_policy_path())
    assert check(load(overrides), catalogue) == []


@pytest.mark.parametrize("size", ["1.5b", "7b", "14b"])
def test_the_authors_set_up(size: str) -> None:
    """What is published of MASPO's runs: 512 prompts a rollout, 32 an update, alpha, no KL, avg@32."""
    config = load([f"experiment=deepseek_r1_distill_qwen_{size}"])
    assert config.trainer.prompts_per_step == 512
    assert config.trainer.prompts_per_step / config.trainer.updates_per_step == 32
    assert config.algorithm.objective["alpha"] == (0.5 if size == "1.5b" else 0.3)
    assert config.algorithm.objective["sigma_base"] == 1
    assert config.algorithm.objective["beta_positive"] == config.algorithm.objective["beta_negative"] == 0.03
    assert config.algorithm.kl.coefficient == 0
    assert config.eval.samples == 32
