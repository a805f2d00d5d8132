"""Samples on disk: written once, gone on with after a stop, judged again, and all that numbers are made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maspo_rl.config.errors import InputError
from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.evaluation.samples import Sampling, complete, outcomes, read_samples, rejudge
from maspo_rl.rollout import SamplingSettings
from maspo_rl.rollout.sampling import sample_seed
from maspo_rl.types import Prompt, Rollout
from maspo_rl.verifier import Verifier

SETTINGS = SamplingSettings(1.0, 1.0, 0, 8, (), 7)
PROMPTS = [Prompt(f"id{number}", (1,), f"{number} + 0", str(number), "arithmetic") for number in range(10)]


class Script:
    """Answers every second sample rightly, and stops after some calls as a killed command does."""

    def __init__(self, calls: int = 1000) -> None:
        self.calls = calls
        self.asked: list[str] = []

    def sample(self, prompts: list[Prompt], samples: int, settings: Any, *, step: int, version: int) -> Any:
        if not self.calls:
            raise KeyboardInterrupt
        self.calls -= 1
        self.asked += [prompt.id for prompt in prompts]
        return [[self.rollout(prompt, index, step, version) for index in range(samples)] for prompt in prompts]

    def rollout(self, prompt: Prompt, index: int, step: int, version: int) -> Rollout:
        text = f"\\boxed{{{prompt.gold if index % 2 else 'x'}}}"
        seed = sample_seed(SETTINGS.seed, step, prompt.id, index)
        return Rollout(prompt.id, index, (1, 2), (0.0, 0.0), text, "stop", version, seed)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifierConfig(workers=1)) as verifier:
        yield verifier


def sampling(engines: Script, verifier: Verifier) -> Sampling:
    return Sampling(engines, verifier, SETTINGS, 4, 0)  # type: ignore[arg-type]


@pytest.fixture
def whole(tmp_path: Path, verifier: Verifier) -> Path:
    path = tmp_path / "whole.jsonl"
    sampling(Script(), verifier).collect(PROMPTS, path, mark="m", chunk=3)
    return path


@pytest.mark.parametrize("torn", [0, 1, 40])
def test_a_stopped_evaluation_goes_on_to_the_same_file(
    torn: int, whole: Path, tmp_path: Path, verifier: Verifier
) -> None:
    """Stopped in the third of four chunks, the last bytes torn off: only what is missing is sampled."""
    path, shown = tmp_path / "stopped.jsonl", []
    with pytest.raises(KeyboardInterrupt):
        sampling(Script(calls=2), verifier).collect(PROMPTS, path, mark="m", chunk=3)
    path.write_bytes(path.read_bytes()[: -torn or None])
    rest = Script()
    sampling(rest, verifier).collect(PROMPTS, path, mark="m", chunk=3, progress=shown.append)
    strip = [{**row, "verdict": row["verdict"]["label"]} for row in read_samples(path)]
    assert strip == [{**row, "verdict": row["verdict"]["label"]} for row in read_samples(whole)]
    assert rest.asked == [prompt.id for prompt in PROMPTS[6 if not torn else 3 :]]
    assert (shown[0], shown[-1]) == (6 if not torn else 3, 10)
    again = Script()
    sampling(again, verifier).collect(PROMPTS, path, mark="m", chunk=3)
    assert again.asked == []


def test_samples_of_another_evaluation_are_not_mixed_in(whole: Path, verifier: Verifier) -> None:
    before = whole.read_bytes()
    with pytest.raises(InputError, match=r"holds samples of another model, .*; choose another run\.name"):
        sampling(Script(), verifier).collect(PROMPTS, whole, mark="other", chunk=3)
    assert whole.read_bytes() == before
    assert complete(whole, "m", 4) == {prompt.id for prompt in PROMPTS}
    assert complete(whole, "m", 5) == set()


def test_a_changed_verdict_is_found_by_judging_again(whole: Path, verifier: Verifier) -> None:
    rows = list(read_samples(whole))
    rows[1]["verdict"] |= {"label": "timeout", "reward": None, "extracted": None}
    whole.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert outcomes(read_samples(whole))["id0"].unjudged == 1
    assert rejudge(whole, verifier) == {"timeout -> correct": 1}
    found = outcomes(read_samples(whole))
    assert list(found) == [prompt.id for prompt in PROMPTS]
    assert found["id3"].correct == (False, True, False, True)
    assert found["id3"].votes == ("x", "3", "x", "3")


@pytest.mark.parametrize("line", ["", "[1]", '{"prompt_id": 1}'])
def test_what_is_no_sample_is_named_with_its_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=r"other\.jsonl, line 1: is no sample"):
        list(read_samples(path))
