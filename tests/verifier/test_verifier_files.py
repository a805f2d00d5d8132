"""Files in, files out; rewards; settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maspo_rl.commands.verify import main
from maspo_rl.config.errors import InputError
from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.types import Label
from maspo_rl.verifier.files import verify_file
from maspo_rl.verifier.reward import overlong_penalty, reward_of


def test_rows_come_back_with_their_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"output": "\\boxed{5}", "gold": 5, "id": "a"},
        {"output": "The answer is 0.5.", "gold": 0.5},
        {"output": "The answer is 0.5.", "gold": 0.5, "dataset": "math"},
        {"output": "\\boxed{5}", "gold": None},
    ]
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n".join(map(json.dumps, rows)) + "\n\n", encoding="utf-8")
    assert verify_file(source, target, VerifierConfig(workers=1)) == {"correct": 2, "wrong": 1, "unparseable": 1}
    judged = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [row["verdict"] for row in judged] == ["correct", "correct", "wrong", "unparseable"]
    assert judged[0] | rows[0] == judged[0]
    assert judged[0]["extracted"] == "5"
    assert judged[3]["reward"] is None
    assert all(row["reason"] and row["seconds"] >= 0 for row in judged)
    verify_file(source, None, VerifierConfig(workers=1))
    assert len(capsys.readouterr().out.splitlines()) == 4


@pytest.mark.parametrize(
    "line", ["{", "5", '{"gold": "1"}', '{"output": "x"}', '{"output": 1, "gold": "1"}', '{"output": "", "gold": [1]}']
)
def test_a_malformed_row_is_named_and_nothing_is_written(tmp_path: Path, line: str) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"output": "", "gold": "1"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"in\.jsonl:2: "):
        verify_file(source, target, VerifierConfig(workers=1))
    assert not target.exists()


def test_replicas_are_refused_where_no_cluster_is_started() -> None:
    with pytest.raises(InputError, match=r"verifier\.replicas=2"):
        main(["verifier.replicas=2", "--serve"])


def test_overlong_penalty_at_the_papers_values() -> None:
    """DAPO (arXiv 2503.14476, section 3.4): expected length 16,384, cache of 4,096 tokens, 20,480 at most."""
    lengths = [1, 16_384, 17_408, 18_432, 20_480, 30_000]
    assert [overlong_penalty(length, 20_480, 4_096) for length in lengths] == [0.0, 0.0, -0.25, -0.5, -1.0, -1.0]
    assert overlong_penalty(20_480, 20_480, 4_096, factor=0.5) == -0.5


@given(st.integers(1, 4096), st.integers(1, 4096))
def test_overlong_penalty_falls_with_the_length(first: int, second: int) -> None:
    shorter, longer = sorted((first, second))
    assert -1.0 <= overlong_penalty(longer, 4096, 1024) <= overlong_penalty(shorter, 4096, 1024) <= 0.0


def test_rewards_come_from_the_settings() -> None:
    config = VerifierConfig(correct_reward=2.0, wrong_reward=-1.0, format_reward=0.25)
    assert reward_of(Label.CORRECT, True, config) == 2.25
    assert reward_of(Label.WRONG, True, config) == -0.75
    assert reward_of(Label.WRONG, False, config) == -1.0
    assert [reward_of(label, True, config) for label in (Label.TIMEOUT, Label.ERROR, Label.UNPARSEABLE)] == [None] * 3


@pytest.mark.parametrize(
    "wrong",
    [
        VerifierConfig(workers=0),
        VerifierConfig(replicas=-1),
        VerifierConfig(deadline_s=0),
        VerifierConfig(memory_gib=0.1),
        VerifierConfig(extraction={"default": ["boxt"]}),
        VerifierConfig(extraction={"gsm8k": ["boxed"]}),
        VerifierConfig(function="module_without_name"),
        VerifierConfig(correct_reward=0.0),
        VerifierConfig(max_fault_share=2.0),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: VerifierConfig) -> None:
    with pytest.raises(InputError, match="verifier\\."):
        wrong.check()
