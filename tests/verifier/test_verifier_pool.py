"""Workers that hang, die, swell or are killed cost their own judgement at most, and never the pool."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from maspo_rl.config.errors import InputError
from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.types import Label
from maspo_rl.verifier import Question, Verifier

TOWER = "\\boxed{3!! + 9^{9^{9^{9}}}}"
"""A power tower beside notation that only math-verify is asked about: it does not come back."""


def symbolic(count: int) -> list[Question]:
    """Distinct questions that need a worker, every other one right."""
    return [Question(f"\\boxed{{(x+{n})^2}}", f"x^2+{2 * n}x+{n * n + n % 2}", "any") for n in range(1, count + 1)]


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def test_a_hanging_judgement_times_out_and_the_pool_stays_full() -> None:
    with Verifier(VerifierConfig(workers=2, deadline_s=1.0)) as verifier:
        verifier.wait_ready()
        verdict, right = verifier.judge_many([Question(TOWER, "5", "any"), symbolic(2)[1]])
        assert (verdict.label, verdict.reward) == (Label.TIMEOUT, None)
        assert verdict.seconds < 2.0
        assert right.label is Label.CORRECT
        assert wait_until(lambda: len(verifier.process_ids()) == 2, 30)
        assert verifier.counts()["restarted_deadline"] == 1
        assert verifier.fault_share() == 0.5
        assert "gold '5'" in verifier.fault_examples()[0]


def test_hostile_answers_among_many_lose_none() -> None:
    questions = symbolic(200)
    for place in range(0, 200, 50):
        questions[place] = Question(TOWER.replace("3!!", f"{place}!!"), "5", "any")
    with Verifier(VerifierConfig(workers=2, deadline_s=1.0, recycle_after=20)) as verifier:
        verdicts = verifier.judge_many(questions)
        assert verifier.counts()["restarted_recycled"] >= 1
    labels = [Label.CORRECT if (index + 1) % 2 == 0 else Label.WRONG for index in range(200)]
    for place in range(0, 200, 50):
        labels[place] = Label.TIMEOUT
    assert [verdict.label for verdict in verdicts] == labels


def test_killing_workers_at_random_changes_no_verdict() -> None:
    """A judgement that meets a kill is made once more. One kill in two batches: one that comes late is met by the next
    batch, which has none of its own, so that no judgement can meet two."""
    questions = symbolic(600)
    chance = random.Random(7)
    kills = 0

    def kill_one(verifier: Verifier) -> None:
        nonlocal kills
        time.sleep(chance.random() * 0.03)
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            psutil.Process(chance.choice(verifier.process_ids())).kill()
            kills += 1

    verdicts = []
    with Verifier(VerifierConfig(workers=2)) as verifier:
        verifier.wait_ready()
        for start in range(0, 600, 40):
            killer = threading.Thread(target=kill_one, args=(verifier,))
            killer.start()
            verdicts += verifier.judge_many(questions[start : start + 20])
            killer.join()
            verdicts += verifier.judge_many(questions[start + 20 : start + 40])
    assert kills >= 3
    assert [verdict.label for verdict in verdicts] == [Label.WRONG, Label.CORRECT] * 300


def test_a_stopped_worker_is_named_and_costs_no_verdict(caplog: pytest.LogCaptureFixture) -> None:
    with Verifier(VerifierConfig(workers=2, deadline_s=1.0)) as verifier:
        verifier.judge_many(symbolic(4))
        assert wait_until(lambda: len(verifier.process_ids()) == 2, 30)
        stopped = verifier.process_ids()[0]
        psutil.Process(stopped).suspend()
        began = time.monotonic()
        verdicts = verifier.judge_many(symbolic(60)[20:])
        assert time.monotonic() - began < 3.0
        assert [verdict.label for verdict in verdicts] == [Label.WRONG, Label.CORRECT] * 20
        assert f"verifier worker {stopped} gave no verdict within 1 s" in caplog.text
        assert wait_until(lambda: not psutil.pid_exists(stopped), 10)


def test_a_stopped_fork_server_is_named_within_the_deadline_and_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """Its workers go on judging meanwhile: without a need for another worker nobody would ask it anything."""
    with Verifier(VerifierConfig(workers=2, deadline_s=1.0)) as verifier:
        verifier.judge_many(symbolic(4))
        assert wait_until(lambda: len(verifier.process_ids()) == 2, 30)
        before = verifier.process_ids()
        server = psutil.Process(before[0]).parent()
        assert server is not None
        server.suspend()
        began = time.monotonic()
        assert wait_until(lambda: "has been stopped for 1 s" in caplog.text, 5)
        assert 1.0 <= time.monotonic() - began < 2.0
        assert wait_until(lambda: not server.is_running(), 10)
        assert wait_until(
            lambda: len(verifier.process_ids()) == 2 and not set(before) & set(verifier.process_ids()), 30
        )
        verdicts = verifier.judge_many(symbolic(60)[20:])
        assert [verdict.label for verdict in verdicts] == [Label.WRONG, Label.CORRECT] * 20


def test_a_judgement_is_made_twice_at_most(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    with Verifier(VerifierConfig(workers=2, function="reward_functions:deadly")) as verifier:
        verdict = verifier.judge_many([Question(str(calls), "", "any")])[0]
        assert (verdict.label, verdict.reward, verifier.counts()["retries"]) == (Label.ERROR, None, 1)
    assert calls.read_text(encoding="utf-8") == "called\n" * 2


def test_threads_and_event_loops_get_the_same_verdicts(verifier: Verifier) -> None:
    questions = [*symbolic(20), Question("\\boxed{5}", "5", "any"), Question("", "5", "any")]
    expected = [verdict.label for verdict in verifier.judge_many(questions)]
    with ThreadPoolExecutor(4) as threads:
        for verdicts in threads.map(lambda _: verifier.judge_many(questions), range(4)):
            assert [verdict.label for verdict in verdicts] == expected

    async def gather() -> list[Label]:
        return [verdict.label for verdict in await asyncio.gather(*map(verifier.judge, questions))]

    assert asyncio.run(gather()) == expected


def test_the_callers_alarm_is_left_alone(verifier: Verifier) -> None:
    signal.alarm(100)
    try:
        verifier.judge_many(symbolic(3))
        assert signal.alarm(0) > 90
    finally:
        signal.alarm(0)


def test_equal_questions_are_judged_once() -> None:
    question = Question("\\boxed{(x+1)^2}", "x^2+2x+1", "any")
    with Verifier(VerifierConfig(workers=1)) as verifier:
        assert {verdict.label for verdict in verifier.judge_many([question] * 50)} == {Label.CORRECT}
        assert verifier.judge_many([question])[0].label is Label.CORRECT
        counts = verifier.counts()
    assert (counts["worker"], counts["shared"], counts["cached"]) == (1, 49, 1)


def test_a_users_function_has_the_same_deadline_and_isolation() -> None:
    config = VerifierConfig(workers=2, deadline_s=1.0, memory_gib=1.0, function="reward_functions:sleepy")
    outputs = ["fine", "sleep", "compute", "allocate", "raise", "die", "nan"]
    with Verifier(config) as verifier:
        verifier.wait_ready()
        verdicts = verifier.judge_many([Question(output, "5", "any") for output in outputs])
    labels = [verdict.label for verdict in verdicts]
    timeout, error = Label.TIMEOUT, Label.ERROR
    assert labels == [Label.CORRECT, timeout, timeout, timeout, error, error, error]
    assert [verdict.reward for verdict in verdicts] == [1.0] + [None] * 6
    assert "KeyError" in verdicts[4].reason
    assert "died" in verdicts[5].reason


def test_a_users_function_that_is_not_there_is_told_at_the_start() -> None:
    with (
        Verifier(VerifierConfig(workers=1, function="reward_functions:missing")) as verifier,
        pytest.raises(InputError, match="missing"),
    ):
        verifier.wait_ready()


def test_the_users_function_scores() -> None:
    with Verifier(VerifierConfig(workers=1, function="reward_functions:by_length")) as verifier:
        verdicts = verifier.judge_many([Question("12345", "", "any"), Question("1234567890", "", "any")])
    assert [(verdict.label, verdict.reward) for verdict in verdicts] == [(Label.WRONG, 0.5), (Label.CORRECT, 1.0)]


def test_workers_are_replaced_after_their_share_of_judgements() -> None:
    config = VerifierConfig(workers=1, recycle_after=2, function="reward_functions:process_id")
    with Verifier(config) as verifier:
        verdicts = verifier.judge_many([Question("", "", "any")] * 4)
    assert len({verdict.reward for verdict in verdicts}) == 2


def test_children_die_with_a_killed_parent() -> None:
    code = (
        "import time\n"
        "from maspo_rl.config.verifier import VerifierConfig\n"
        "from maspo_rl.verifier import Verifier\n"
        "verifier = Verifier(VerifierConfig(workers=2))\n"
        "verifier.wait_ready()\n"
        "print(*verifier.process_ids(), flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(word) for word in parent.stdout.readline().split()]
        assert children
        parent.kill()
    assert wait_until(lambda: not any(psutil.pid_exists(child) for child in children), 10)


def test_a_closed_verifier_leaves_no_process_and_no_open_end() -> None:
    verifier = Verifier(VerifierConfig(workers=2, deadline_s=30))
    verifier.wait_ready()
    children = verifier.process_ids()
    answers = threading.Thread(target=lambda: verdicts.extend(verifier.judge_many([Question(TOWER, "5", "any")] * 3)))
    verdicts: list[object] = []
    answers.start()
    time.sleep(0.5)
    verifier.close()
    answers.join(10)
    assert len(verdicts) == 3
    assert wait_until(lambda: not any(psutil.pid_exists(child) for child in children), 10)
    with pytest.raises(RuntimeError, match="closed"):
        verifier.start()


def test_the_room_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys, maspo_rl.verifier, maspo_rl.verifier.judge, maspo_rl.verifier.files\n"
        "print({'torch', 'vllm', 'ray', 'deepspeed', 'sympy', 'math_verify'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert done.stdout.strip() == "set()"


def test_a_worker_that_got_no_time_is_not_taken_for_a_hanging_one() -> None:
    with Verifier(VerifierConfig(workers=1, deadline_s=1.0)) as verifier:
        verifier.wait_ready()
        psutil.Process(verifier.process_ids()[0]).suspend()
        assert verifier.judge_many(symbolic(2)[1:])[0].label is Label.CORRECT
        assert verifier.counts()["retries"] == 1
