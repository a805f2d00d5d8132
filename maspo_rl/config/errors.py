"""The one error that means: the user's input is wrong."""


class InputError(ValueError):
    """The user's input is wrong. The command line prints each line of the message and exits with code 2.

    One problem a line; each line names the value, the rule it breaks and the remedy.
    """
