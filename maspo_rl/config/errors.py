"""The two errors that the command line tells in one line: wrong input, and a run that had to stop."""


class InputError(ValueError):
    """The user's input is wrong. The command line prints each line of the message and exits with code 2.

    One problem a line; each line names the value, the rule it breaks and the remedy.
    """


class RunFailure(RuntimeError):
    """A run cannot go on, through no fault of the input. The command line prints the message and exits with code 1.

    The message names who failed at what, and what to try.
    """
