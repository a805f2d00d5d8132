"""How a command ends a run that is asked to stop: after the present step, with a checkpoint."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Stoppable(Protocol):
    """A run that ends after the present step, with a checkpoint, once `stop_requested`."""

    stop_requested: bool


@contextmanager
def stopping_on_signal(run: Stoppable, say: Callable[[str], None]) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM ends the run after the present step, with a checkpoint; the second at once."""

    def stop(number: int, _: object) -> None:
        if run.stop_requested:
            raise KeyboardInterrupt
        run.stop_requested = True
        name = signal.Signals(number).name
        say(f"{name}: finishing this step, then writing a checkpoint; once more to stop at once")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def steps_done(finished: int, steps: int) -> str:
    """The first line of what is said at a run's end."""
    return f"{finished} of {steps} steps done" + ("" if finished >= steps else "; the same command goes on from here")
