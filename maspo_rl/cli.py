"""`maspo-rl <command>`: dispatch only.

Exit codes: 0 done; 2 the user's input is wrong (one clear line each, nothing started); 1 a fault of ours or the
machine's; 130 ended by Ctrl-C before it could be ended well.
"""

from __future__ import annotations

import errno
import gc
import signal
import sys
from collections.abc import Callable
from importlib import import_module

from maspo_rl.config.errors import InputError, RunFailure

_COMMANDS = {
    "train": "train or resume a run: maspo-rl train experiment=quickstart algorithm=maspo",
    "sft": "learn from demonstrations first: maspo-rl sft data=local data.files=FILE data.columns.response=COLUMN",
    "eval": "measure a policy: maspo-rl eval model=embedded benchmarks=[arithmetic] k=8 | --rescore DIR",
    "table": "every row of a paper table beside the published one: maspo-rl table NAME [--collect]",
    "hygiene": "what of a training set stands in benchmarks: maspo-rl hygiene data=math benchmarks=[math500]",
    "verify": "judge answers: maspo-rl verify FILE.jsonl [--out FILE] | --serve",
    "plan": "explain a run without starting it: maspo-rl plan experiment=quickstart [--gpu H100] [--json]",
    "doctor": "what is installed, what works, what to do about the rest: maspo-rl doctor [--json]",
    "objective": "loss and gradient weight of an objective: maspo-rl objective NAME --tokens FILE.jsonl | --plot FILE",
}


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    command, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if command in ("-h", "--help", "help"):
        print("usage: maspo-rl COMMAND ...\n")
        print("\n".join(f"  {name:<10} {what}" for name, what in _COMMANDS.items()))
        return 0
    try:
        if command not in _COMMANDS:
            raise InputError(f"unknown command '{command}': choose from {', '.join(_COMMANDS)}")
        # Imports make many objects and no garbage: looking for it every 700 objects takes a tenth of their time.
        gc.set_threshold(100_000)
        run: Callable[[list[str]], int] = import_module(f"maspo_rl.commands.{command}").main
        return run(rest)
    except InputError as error:
        for line in str(error).splitlines():
            print(f"maspo-rl: {line}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("maspo-rl: interrupted; what was finished is on the disk", file=sys.stderr)
        return 128 + signal.SIGINT
    except (RunFailure, OSError) as error:
        if not isinstance(error, RunFailure) and error.errno != errno.ENOSPC:
            raise
        remedy = "" if isinstance(error, RunFailure) else "; free some space, and the same command goes on"
        print(f"maspo-rl: {error}{remedy}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
