"""docs/algorithms.md and configs/algorithm say what the code says."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from maspo_rl import advantages, objectives
from maspo_rl.config.algorithm import AlgorithmConfig
from maspo_rl.objectives.aggregation import MODES
from maspo_rl.objectives.compose import build_policy_loss

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs" / "algorithm").glob("*.yaml"))


def sections():
    parts = re.split(r"^## (.+)$", (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def table(section):
    """Rows of a section's table by their first cell."""
    rows = [line.strip("|").split("|") for line in sections()[section].splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): row for row in rows}


def flags(text):
    """`flag=default` in a text."""
    return dict(re.findall(r"`([\w.]+)=([^`]+)`", text))


def defaults(kind):
    return {field.name: json.dumps(field.default) for field in fields(kind) if field.init}


def loaded(path):
    """The algorithm's part of a file, with its references to other sections resolved."""
    node = OmegaConf.load(path)
    node = node if "algorithm" in node else OmegaConf.create({"algorithm": node})
    node.rollout = {"max_new_tokens": 1000}
    OmegaConf.resolve(node)
    config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(AlgorithmConfig), node.algorithm))
    assert isinstance(config, AlgorithmConfig)
    return config


def test_every_objective_has_its_row_with_its_flags():
    rows = table("Objectives")
    assert set(rows) == set(objectives.catalogue())
    for name, kind in objectives.catalogue().items():
        assert flags(rows[name][3]) == defaults(kind), name


def test_every_advantage_has_its_row_with_its_flags():
    rows = table("Advantages")
    assert set(rows) == set(advantages.catalogue())
    for name, kind in advantages.catalogue().items():
        assert flags(rows[name][3]) == defaults(kind), name


def test_every_mode_has_its_row():
    assert tuple(table("Aggregations")) == MODES


def test_the_config_offers_the_modes_of_the_code():
    (mode,) = [field for field in fields(AlgorithmConfig().aggregation) if field.name == "mode"]
    assert mode.metadata["choices"] == MODES


def test_wrappers_and_their_defaults():
    documented = flags(sections()["What combines with any objective"])
    config = OmegaConf.structured(AlgorithmConfig)
    for key, default in documented.items():
        assert json.dumps(OmegaConf.select(config, key, throw_on_missing=True)) == default, key
    sectioned = {
        "kl",
        "adaptive_entropy",
        "entropy_advantage",
        "advantage_reweighting",
        "lopti",
        "overlong",
        "group_filter",
    }
    keys = {f"{section}.{key}" for section in sectioned for key in config[section]} | {"entropy_coefficient"}
    assert set(documented) == keys


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_each_algorithm_is_whole_and_documented(path):
    config = loaded(path)
    policy, estimator = build_policy_loss(config), advantages.build(**config.advantage)
    written = {field.name for kind in (policy.objective, estimator) for field in fields(kind) if field.init}
    assert written == {*config.objective, *config.advantage} - {"name"}
    assert config.name == path.stem
    row = table("Algorithms")[path.stem]
    assert [cell.strip(" `") for cell in row[1:4]] == [
        config.objective["name"],
        config.advantage["name"],
        config.aggregation.mode,
    ]


def test_no_row_without_its_file():
    assert set(table("Algorithms")) == {path.stem for path in CONFIGS}


def test_files_stay_small():
    for room in ("objectives", "advantages"):
        for path in (ROOT / "maspo_rl" / room).glob("*.py"):
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 120, path
