"""The one door through which an actor is waited for: no wait without a deadline, and none whose message leaves open who
waited for whom, since when, at which step, and what to try."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from maspo_rl.config.errors import RunFailure

# An actor that dies may first be felt by those that were talking to it; its own end is known this much later.
_DEATH_NOTICE_S = 5.0
_step: int | None = None


class DeadlineError(RunFailure):
    """Somebody did not answer in time."""


class ActorFailure(RunFailure):
    """An actor raised what is not one of ours. The message names it and gives the cause in one line."""


class ActorDied(RunFailure):
    """An actor's process is gone. The message gives Ray's reason: killed, out of memory, a lost node."""


def at_step(step: int) -> None:
    """From here on, whatever this process waits for in vain is told as of this step."""
    global _step  # noqa: PLW0603 - a process is at one step; handing it through every call would hide what they do
    _step = step


def wait_for(
    references: Any,
    *,
    seconds: float,
    who: str,
    what: str,
    remedy: str,
    waiter: str = "the driver",
    limit: float | None = None,
) -> Any:
    """Result of one object reference, or the list of results of many, within `seconds`, the rest of `limit`.

    `who` is one actor, or what each of many is called before its number; `remedy` is the key that allows more time.
    Exceptions of our own classes raised inside an actor come out as themselves; anything else becomes
    `ActorFailure`, a death `ActorDied`, silence `DeadlineError`.
    """
    limit = limit or seconds
    since = time.strftime("%H:%M:%S", time.localtime(time.time() - (limit - seconds)))
    many = list(references) if isinstance(references, Sequence) else None
    try:
        return ray.get(references if many is None else many, timeout=seconds)
    except GetTimeoutError:
        silent = who if many is None else _numbered(who, many, ray.wait(many, num_returns=len(many), timeout=0)[1])
        raise DeadlineError(
            f"{_place()}{waiter} has waited since {since}, {limit:.0f} s, for {silent} to finish '{what}'; look into "
            f"its log in the run's logs/, or raise {remedy}"
        ) from None
    except RayTaskError as error:
        if many is not None:
            _tell_death(many, who, what, since)
        cause = error.cause
        if isinstance(cause, RunFailure):
            raise type(cause)(f"{_place()}{cause}") from None
        summary = str(cause).strip().splitlines()[0] if str(cause).strip() else "no message"
        raise ActorFailure(f"{_place()}{who} failed at '{what}': {type(cause).__name__}: {summary}") from error
    except RayError as error:
        if many is not None:
            _tell_death(many, who, what, since)
        raise _death(error, who, what, since) from error


def _tell_death(many: list[Any], who: str, what: str, since: str) -> None:
    """Raises ActorDied for the one of `many` that died: what the others say of it is a consequence."""
    ready, _ = ray.wait(many, num_returns=len(many), timeout=_DEATH_NOTICE_S)
    for reference in ready:
        try:
            ray.get(reference)
        except RayTaskError:
            continue
        except RayError as error:
            raise _death(error, _numbered(who, many, [reference]), what, since) from error


def _death(error: RayError, who: str, what: str, since: str) -> ActorDied:
    """Ray's reason comes after the actor's particulars, where it gives any."""
    text = " ".join(str(error).split())
    reason = text.partition("The actor is dead because ")[2] or text
    return ActorDied(
        f"{_place()}{who} died during '{what}', which began {since}: {type(error).__name__}: {reason[:400]}"
    )


def _numbered(who: str, many: list[Any], chosen: list[Any]) -> str:
    return f"{who} {', '.join(str(many.index(reference)) for reference in chosen)}"


def _place() -> str:
    return "" if _step is None else f"step {_step}: "
