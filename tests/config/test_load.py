"""A command line becomes a `Config`, or one line that says what is wrong with it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from maspo_rl.config.errors import InputError
from maspo_rl.config.keys import CONFIGS, choices, leaves
from maspo_rl.config.load import load, read, save
from maspo_rl.config.schema import Config

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("trainer.step=4", "unknown key 'trainer.step': did you mean trainer.steps?"),
        ("+trainer.step=4", "unknown key 'trainer.step': did you mean trainer.steps?"),
        ("++trainer.step=4", "unknown key 'trainer.step': did you mean trainer.steps?"),
        ("~trainer.step", "unknown key 'trainer.step': did you mean trainer.steps?"),
        ("lrr=1e-6", "unknown key 'lrr': did you mean optimizer.lr?"),
        ("algoritm=grpo", "unknown key 'algoritm': did you mean algorithm?"),
        ("hydra.verbose=true", "unknown key 'hydra.verbose': "),
        ("algorithm=masp", "unknown algorithm 'masp': did you mean maspo?"),
        ("+experiment=quickstrat", "unknown experiment 'quickstrat': did you mean quickstart?"),
        ("model=Qwen/Qwen3-8B", "a directory or hub name goes into model.path=Qwen/Qwen3-8B"),
        ("~trainer.steps", "keys are never removed"),
        ("trainer=5", "trainer is a section; set one of trainer.prompts_per_step, trainer.steps"),
        ("trainer.steps", "is not of the form key=value"),
        ("trainer.steps=1,2", "one value a run"),
        ("trainer.steps=many", "trainer.steps: Value 'many' of type 'str' could not be converted to Integer"),
        ("trainer.steps=1.5", "trainer.steps: Value '1.5' of type 'float' could not be converted to Integer"),
        ("seed=null", "seed: field 'seed' is not Optional"),
        ("rollout.stop=end", "rollout.stop: "),
        ("run.name=${nothing}", "run.name: Interpolation key 'nothing' not found"),
    ],
)
def test_a_wrong_override_is_one_line(override: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        load([override])
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_run_is_named_by_what_it_is() -> None:
    assert load(["experiment=quickstart", "algorithm=grpo", "seed=3"]).run.name == "quickstart-grpo-s3"
    assert load(["experiment=quickstart"], method="sft").run.name == "quickstart-sft-s0"
    assert load(["experiment=quickstart", "run.name=mine"], method="sft").run.name == "mine"


def test_all_wrong_overrides_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        load(["lrr=1", "algorithm=masp", "seed=3", "+foo.bar=1"])
    assert len(str(caught.value).splitlines()) == 3


def test_a_known_key_may_carry_a_plus() -> None:
    assert load(["++trainer.steps=7", "+experiment=quickstart"]).trainer.steps == 7


def test_the_algorithm_is_swapped_by_one_word() -> None:
    maspo, grpo = (load(["experiment=qwen2.5_math_1.5b", *word]) for word in ([], ["algorithm=grpo"]))
    assert (maspo.algorithm.name, grpo.algorithm.name) == ("maspo", "grpo")
    assert grpo.algorithm.objective["name"] == "grpo"
    assert "alpha" not in grpo.algorithm.objective
    assert (grpo.trainer, grpo.rollout, grpo.optimizer) == (maspo.trainer, maspo.rollout, maspo.optimizer)


def test_alpha_follows_the_size_of_the_model() -> None:
    """MASPO's README: 0.5 for 1.5B, 0.3 for 7B and more; a command line has the last word."""

    def alpha(*overrides: str) -> float:
        return float(load(list(overrides)).algorithm.objective["alpha"])

    for family in ("qwen2.5_math", "deepseek_r1_distill_qwen"):
        assert alpha(f"experiment={family}_1.5b", "algorithm=maspo") == 0.5
        assert alpha(f"experiment={family}_7b") == 0.3
        assert alpha(f"experiment={family}_1.5b", "algorithm.objective.alpha=0.2") == 0.2


def test_the_name_of_a_run_says_what_it_is() -> None:
    assert load(["experiment=quickstart", "algorithm=grpo", "seed=3"]).run.name == "quickstart-grpo-s3"
    assert load(["model.path=./policies/mine"]).run.name == "mine-maspo-s0"
    assert load(["run.name=mine"]).run.name == "mine"


def test_a_saved_configuration_reads_back_equal(tmp_path: Path) -> None:
    config = load(["experiment=quickstart", "optimizer.lr=3e-5", "rollout.stop=['\n\n']"])
    save(config, tmp_path / "config.yaml")
    assert read(tmp_path / "config.yaml") == config


def test_a_saved_configuration_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("trainer: {epochs: 3}\n")
    with pytest.raises(InputError, match=r"epochs.*another version"):
        read(tmp_path / "config.yaml")


@pytest.mark.parametrize("group", ["model", "data", "algorithm", "cluster"])  # experiments: test_experiments.py
def test_every_file_of_a_group_fits_the_schema(group: str) -> None:
    schema = OmegaConf.structured(Config)
    assert choices(group)
    for name in choices(group):
        file = CONFIGS / group / f"{name}.yaml"
        content = OmegaConf.load(file)
        OmegaConf.merge(schema, content if "@package _global_" in file.read_text() else {group: content})


def test_every_tuned_file_is_reached() -> None:
    """Hydra leaves out an optional file that it does not find: a misnamed one would be left out in silence."""
    reachable = {f"{model}_{algorithm}" for model in choices("model") for algorithm in choices("algorithm")}
    assert set(choices("tuned")) <= reachable


def test_the_documentation_names_every_key() -> None:
    """Those of `algorithm` and `verifier` have guides of their own."""
    text = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    keys = [key for key, _ in leaves() if not key.startswith(("algorithm.", "verifier."))]
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_a_mistake_is_told_within_ten_seconds_and_without_heavy_imports() -> None:
    program = (
        "import sys; from maspo_rl.config import check, load\n"
        "try: load.load(['experiment=quickstart', 'trainer.step=1'])\n"
        "except ValueError as error: print(error)\n"
        "print(sorted({'torch', 'vllm', 'ray', 'deepspeed', 'transformers'} & set(sys.modules)))"
    )
    start = time.monotonic()
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.splitlines() == ["unknown key 'trainer.step': did you mean trainer.steps?", "[]"]
    assert time.monotonic() - start < 10
