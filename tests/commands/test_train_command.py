"""`maspo-rl train`: wrong input is one clear line and exit code 2, before Ray is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from maspo_rl.cli import main
from maspo_rl.commands.train import _inert_objective
from maspo_rl.config.load import load


def test_one_update_makes_maspo_grpo_and_that_is_said() -> None:
    warning = _inert_objective(load(["experiment=quickstart", "trainer.updates_per_step=1"]))
    assert warning is not None
    assert "maspo is grpo" in warning
    assert _inert_objective(load(["experiment=quickstart"])) is None
    assert _inert_objective(load(["experiment=quickstart", "algorithm=grpo", "trainer.updates_per_step=1"])) is None


@pytest.fixture
def no_template(tmp_path: Path) -> Path:
    """The embedded policy without its chat template."""
    from maspo_rl.data import embedded_policy_path  # noqa: PLC0415

    for file in embedded_policy_path().iterdir():
        if file.name != "chat_template.jinja":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def rows(path: Path, *rows: dict[str, str]) -> str:
    """A JSONL file; the override that names it."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"data.files={path}"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("optimizr.lr=1", "did you mean optimizer.lr"),
        ("+rollout.temprature=1", "did you mean rollout.temperature"),
        ("algorithm=gropo", "did you mean grpo"),
        ("algorithm.objective.alpa=0.5", "alpha"),
        ("model.path=/nowhere", "model.path=/nowhere: no such"),
        ("rollout.samples_per_prompt=1", "needs at least 2"),
        ("trainer.updates_per_step=3", "trainer.updates_per_step=3"),
        ("data.max_prompt_tokens=2", "longer"),
        ("run.dir=/proc/nowhere", "cannot be written"),
    ],
)
def test_wrong_values(override: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = () if override.startswith("run.dir") else (f"run.dir={tmp_path}",)
    assert main(["train", "experiment=quickstart", override, *where]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
    assert "Traceback" not in error


def test_wrong_files(tmp_path: Path, no_template: Path, capsys: pytest.CaptureFixture[str]) -> None:
    local = ["train", "experiment=quickstart", "data=local", "data.max_prompt_tokens=64", f"run.dir={tmp_path}"]
    cases = [
        (rows(tmp_path / "a.jsonl", *({"problem": f"{i} + 1 = ?", "anser": f"{i + 1}"} for i in range(50))), "answer"),
        (rows(tmp_path / "b.jsonl"), "no train problems"),
        (f"data.files={tmp_path}/none.jsonl", "none.jsonl"),
    ]
    for override, said in cases:
        assert main([*local, override]) == 2
        error = capsys.readouterr().err
        assert said in error, error
        assert len(error.splitlines()) == 1
    assert main(["train", "experiment=quickstart", f"model.path={no_template}", f"run.dir={tmp_path}"]) == 2
    assert "chat template" in capsys.readouterr().err


def test_a_misspelt_key_starts_neither_ray_nor_torch() -> None:
    script = (
        "import sys; from maspo_rl.cli import main; code = main(['train', 'trainer.step=1']);"
        "sys.exit(code if not {'ray', 'torch', 'vllm', 'deepspeed'} & set(sys.modules) else 99)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=60).returncode == 2
