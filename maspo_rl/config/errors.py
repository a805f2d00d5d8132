"""The two errors that the command line tells in one line: wrong input, and a run that had to stop; and which
file the machine's own are about."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """The user's input is wrong. The command line prints each line of the message and exits with code 2.

    One problem a line; each line names the value, the rule it breaks and the remedy.
    """


class RunFailure(RuntimeError):
    """A run cannot go on, through no fault of the input. The command line prints the message and exits with code 1.

    The message names who failed at what, and what to try.
    """


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Names `path` in the error of a full disk, which says of no file when it comes from a write."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC and error.filename is None:
            error.filename = str(path)
        raise
