"""`maspo-rl doctor`: each finding with its remedy, exit code by the failures, nothing outlives its deadline."""

from __future__ import annotations

import json
import time
from importlib import metadata
from pathlib import Path

import psutil
import pytest

from maspo_rl.cli import main
from maspo_rl.commands import doctor
from maspo_rl.planning import health
from maspo_rl.planning.health import Finding, findings, room, smoke, versions


def test_versions_against_their_windows() -> None:
    torch, rich = metadata.version("torch"), metadata.version("rich")
    found = {
        finding.what: finding
        for finding in versions(
            ["torch>=2", "rich<1", "no-such-package==1.0"],
            {"cpu": ["scipy>=1"], "gpu": ["vllm==9"], "dev": ["pytest<1"]},
        )
    }
    assert (found["torch"].status, found["torch"].found) == ("ok", torch)
    assert found["rich"] == Finding("rich", "failure", rich, "pip install 'rich<1'")
    assert found["no-such-package"].remedy == "pip install 'no-such-package==1.0'"
    assert found["scipy"].status == "ok"  # of the extra that this machine has
    assert not {"vllm", "pytest"} & set(found)


def test_both_builds_of_vllm_are_one_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_installed", lambda name: "0.32.0")
    assert [finding.what for finding in versions([], {}) if finding.status == "failure"] == ["vllm"]


def test_a_machine_without_vllm_and_deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at to the end; both are named with their remedy, and shared memory that is too small too."""
    monkeypatch.setattr(health, "find_spec", lambda name: None)
    found = {finding.what: finding for finding in findings(weights_bytes=1 << 50)}
    for name in ("vllm works", "deepspeed works"):
        assert found[name] == Finding(name, "failure", "not installed", "scripts/setup.sh")
    assert found["/dev/shm"].status == "failure"
    assert "--shm-size" in found["/dev/shm"].remedy
    assert found["network"].status == "ok"
    assert found["open files"].status in ("ok", "warning")


def test_a_test_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    program = (
        "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)']);"
        f"open({str(started)!r}, 'w').write(str(child.pid)); time.sleep(99)"
    )
    before = time.monotonic()
    finding = smoke("json", ["-c", program], 2, "wait")
    assert finding == Finding("json works", "failure", "did not end within 2 s", "wait")
    assert time.monotonic() - before < 20
    pid = int(started.read_text())
    # SIGKILL is sent when the finding is there; the kernel may need a moment to carry it out.
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() - before < 20
        time.sleep(0.05)


def test_a_test_that_fails_says_why() -> None:
    assert smoke("json", ["-c", "raise RuntimeError('operator nms does not exist')"], 30, "r").found == (
        "RuntimeError: operator nms does not exist"
    )
    assert smoke("json", ["-c", "import os; os.kill(os.getpid(), 4)"], 30, "r").found == "died of signal 4"
    assert smoke("json", ["-c", "print('8 tokens')"], 30, "r") == Finding("json works", "ok", "8 tokens")


def test_room_is_told_in_the_plans_words() -> None:
    (finding,) = room(["memory: the run takes 9 GiB, this machine has 4; lower x", "seed=a: wrong"], {})
    assert finding == Finding("room", "failure", "memory: the run takes 9 GiB, this machine has 4", "lower x")


@pytest.mark.parametrize(("statuses", "code"), [(["ok", "warning"], 0), (["ok", "failure", "failure"], 1)])
def test_the_exit_code_follows_the_failures(
    statuses: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "findings", lambda _: iter(Finding("it", status, "found", "do") for status in statuses))
    arguments = ["experiment=quickstart", f"run.dir={tmp_path}"]
    assert main(["doctor", "--json", *arguments]) == code
    answer = json.loads(capsys.readouterr().out)
    assert answer["failures"] == statuses.count("failure")
    assert [finding["status"] for finding in answer["findings"]] == ["ok", *statuses]  # the room first
    assert main(["doctor", *arguments]) == code
    assert "remedy" in capsys.readouterr().out


def test_a_wrong_configuration_is_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "trainer.step=1"]) == 2
    assert "did you mean trainer.steps?" in capsys.readouterr().err
