"""Whatever an actor comes to, the driver's message says who waited for whom, since when, at which step, and why."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator

import pytest
import ray
from ray.exceptions import NodeDiedError, OutOfMemoryError, RayActorError, RayError
from stack import RunningStack

from maspo_rl.cluster import ActorDied, ActorFailure, DeadlineError, at_step, wait_for


@pytest.fixture(autouse=True)
def _at_step_seven(stack: RunningStack) -> None:
    """In the Ray of the session."""
    at_step(7)


@pytest.fixture
def actors() -> Iterator[list[ray.actor.ActorHandle]]:
    class Patient:
        def sleep(self, seconds: float) -> None:
            time.sleep(seconds)

        def stop(self) -> None:
            os.kill(os.getpid(), signal.SIGSTOP)

        def die(self) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        def fail(self) -> None:
            raise ZeroDivisionError("by zero\nand more")

    pair = [ray.remote(Patient).options(num_cpus=0).remote() for _ in range(2)]
    ray.get([actor.sleep.remote(0) for actor in pair])
    yield pair
    for actor in pair:
        ray.kill(actor)


def test_silence_names_the_silent(actors: list[ray.actor.ActorHandle]) -> None:
    references = [actors[0].sleep.remote(0), actors[1].stop.remote()]
    began = time.monotonic()
    with pytest.raises(DeadlineError) as caught:
        wait_for(references, seconds=1.0, who="rank", what="step", remedy="learner.timeout_s")
    assert time.monotonic() - began < 2
    assert re.fullmatch(
        r"step 7: the driver has waited since \d\d:\d\d:\d\d, 1 s, for rank 1 to finish 'step'; look into its log in "
        r"the run's logs/, or raise learner.timeout_s",
        str(caught.value),
    )


def test_an_exception_is_one_line(actors: list[ray.actor.ActorHandle]) -> None:
    with pytest.raises(ActorFailure, match=r"^step 7: engine 1 failed at 'start': ZeroDivisionError: by zero$"):
        wait_for(actors[0].fail.remote(), seconds=9, who="engine 1", what="start", remedy="more")


def test_a_death_is_told_before_what_others_say_of_it(actors: list[ray.actor.ActorHandle]) -> None:
    references = [actors[0].fail.remote(), actors[1].die.remote()]
    with pytest.raises(ActorDied, match=r"^step 7: rank 1 died during 'step', which began .*: ActorDiedError: "):
        wait_for(references, seconds=20, who="rank", what="step", remedy="more")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (OutOfMemoryError("memory on the node was 61.9GB / 62.0GB, above the threshold of 0.95"), "61.9GB / 62.0GB"),
        (NodeDiedError("The node 10.0.0.7 stopped answering"), "node 10.0.0.7"),
        (
            RayActorError(error_msg="The actor is dead because its node has died. 10.0.0.7"),
            "its node has died. 10.0.0.7",
        ),
    ],
)
def test_rays_reason_for_a_death_is_told(reason: RayError, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def get(*_: object, **__: object) -> None:
        raise reason

    reference = ray.put(0)
    monkeypatch.setattr(ray, "get", get)
    with pytest.raises(ActorDied) as caught:
        wait_for(reference, seconds=1, who="rollout engine 0", what="generate", remedy="more")
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
