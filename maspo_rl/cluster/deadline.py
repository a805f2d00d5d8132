"""The one door through which the driver waits on an actor: no wait without a deadline and a name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RaySystemError, RayTaskError

from maspo_rl.config.errors import RunFailure


class DeadlineError(RunFailure):
    """Somebody did not answer in time. The message names who, what for, and how long was waited."""


class ActorFailure(RunFailure):
    """An actor raised what is not one of ours. The message names it and gives the cause in one line."""


class ActorDied(RunFailure):
    """An actor's process is gone. The message gives Ray's reason: killed, out of memory, a lost node."""


def wait_for(references: Any, *, seconds: float, who: str, what: str, limit: float | None = None) -> Any:
    """Result of one object reference, or the list of results of many, within `seconds`, the rest of `limit`.

    Exceptions of our own classes raised inside an actor come out as themselves; anything else becomes
    `ActorFailure`, a death `ActorDied`, silence `DeadlineError`.
    """
    started = time.monotonic()
    try:
        return ray.get(list(references) if isinstance(references, Sequence) else references, timeout=seconds)
    except GetTimeoutError:
        raise DeadlineError(
            f"{who} did not finish '{what}' within {limit or seconds:.0f} s; look into its log in the run's logs/, "
            f"or allow more with the room's timeout_s"
        ) from None
    except RayTaskError as error:
        cause = error.cause
        if type(cause).__module__.startswith("maspo_rl."):
            raise cause from None
        summary = str(cause).strip().splitlines()[0] if str(cause).strip() else "no message"
        raise ActorFailure(f"{who} failed at '{what}': {type(cause).__name__}: {summary}") from error
    except (RayActorError, RaySystemError) as error:
        waited = time.monotonic() - started
        summary = " ".join(str(error).split())[:500]
        raise ActorDied(f"{who} died during '{what}' after {waited:.1f} s: {summary}") from error
