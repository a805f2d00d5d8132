"""`maspo-rl objective`: numbers out of a file, clear errors, no heavy imports, a picture."""

import json
import subprocess
import sys

import pytest
from token_cases import TABLE, TOKENS

from maspo_rl.commands.objective import plot_objectives, run_objective
from maspo_rl.config.errors import InputError
from maspo_rl.objectives import catalogue


@pytest.fixture
def tokens_file(tmp_path):
    path = tmp_path / "tokens.jsonl"
    keys = ("old_prob", "ratio", "advantage", "sequence")
    path.write_text("".join(json.dumps(dict(zip(keys, (*token, 0), strict=True))) + "\n" for token in TOKENS))
    return path


@pytest.mark.parametrize(("name", "parameters", "expected"), TABLE, ids=lambda value: str(value)[:40])
def test_values(tokens_file, name, parameters, expected):
    given = [f"{field}={value}" for field, value in parameters.items()]
    rows = [json.loads(line) for line in run_objective(name, given, tokens_file)]
    for row, pair in zip(rows, expected, strict=True):
        assert pair is None or (row["loss"], row["weight"]) == pytest.approx(pair, abs=1e-5)


def test_gmpo_counts_its_sequence_once(tokens_file):
    keys = ("old_prob", "ratio", "advantage", "sequence")
    rows = [(0.3, 2, 1, 5), (0.3, 0.9, 1, 5), (0.3, 1.1, 1, 5)]
    tokens_file.write_text("\n".join(json.dumps(dict(zip(keys, row, strict=True))) for row in rows))
    found = [json.loads(line) for line in run_objective("gmpo", [], tokens_file)]
    assert [row["loss"] for row in found] == pytest.approx([-1.138809] * 3, abs=1e-6)
    assert [row["weight"] for row in found] == pytest.approx([0, 0.379603, 0.379603], abs=1e-6)


@pytest.mark.parametrize("name", list(catalogue()))
def test_every_objective_answers(tokens_file, name):
    assert len(list(run_objective(name, [], tokens_file))) == len(TOKENS)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("mapso", [], "did you mean 'maspo'"),
        ("maspo", ["alfa=1"], "did you mean 'alpha'"),
        ("maspo", ["name=grpo"], "no parameter 'name'"),
        ("maspo", ["alpha"], "field=value"),
        ("maspo", ["alpha=x"], "must be a finite number"),
        ("maspo", ["alpha=Infinity"], "must be a finite number"),
        ("maspo", ["clamps=1"], "must be true or false"),
        ("maspo", ["gate=medium"], "must be 'soft' or 'hard'"),
        ("maspo", ["alpha=-1"], "must be at least 0"),
        ("aspo", ["epsilon_high_entropy=.4"], "entropy is missing"),
    ],
)
def test_wrong_input(tokens_file, name, parameters, message):
    with pytest.raises(InputError, match=message):
        list(run_objective(name, parameters, tokens_file))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"old_prob": 0.5, "ratio": 1, "advantage": 1}', "sequence is missing"),
        ('{"old_prob": 0, "ratio": 1, "advantage": 1, "sequence": 0}', "old_prob=0"),
        ('{"old_prob": 0.5, "ratio": -1, "advantage": 1, "sequence": 0}', "ratio=-1"),
        ('{"old_prob": 0.5, "ratio": 1, "advantage": NaN, "sequence": 0}', "finite"),
        ('{"old_prob": 0.5, "ratio": 1, "advantage": 1, "sequence": 0.5}', "whole number"),
        ('{"old_prb": 0.5, "ratio": 1, "advantage": 1, "sequence": 0}', "did you mean 'old_prob'"),
        ("", "has no tokens"),
    ],
)
def test_wrong_rows(tmp_path, line, message):
    path = tmp_path / "tokens.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=message):
        list(run_objective("maspo", [], path))


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        list(run_objective("maspo", [], tmp_path / "none.jsonl"))


def test_no_heavy_imports():
    heavy = "{'vllm', 'deepspeed', 'ray', 'transformers', 'matplotlib', 'omegaconf', 'hydra'}"
    code = f"import sys, maspo_rl.commands.objective, maspo_rl.advantages; print({heavy} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "set()"


def test_picture(tmp_path):
    for path in plot_objectives(["grpo", "maspo"], ["alpha=0.5"], tmp_path / "weights"):
        assert path.stat().st_size > 10_000
    with pytest.raises(InputError, match="none of grpo, maspo has a parameter 'alfa'"):
        plot_objectives(["grpo", "maspo"], ["alfa=0.5"], tmp_path / "weights")
