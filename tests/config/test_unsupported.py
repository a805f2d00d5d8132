"""What no run can use yet is refused before anything starts."""

from __future__ import annotations

import pytest

from maspo_rl import advantages
from maspo_rl.config.check import Catalogue, check
from maspo_rl.config.load import load
from maspo_rl.data import embedded_policy_path
from maspo_rl.objectives.compose import build_policy_loss


@pytest.mark.parametrize("algorithm", ["lp_reg", "remax"])
def test_refused_by_name(algorithm: str) -> None:
    config = load(["experiment=quickstart", f"algorithm={algorithm}"])
    problems = check(config, Catalogue(build_policy_loss, advantages.build, embedded_policy_path()))
    assert len(problems) == 1
    assert algorithm in problems[0]
    assert "no run can use it yet" in problems[0]
