"""`maspo-rl verify FILE.jsonl [--out FILE]`, or `--serve` for the HTTP service; `verifier.<key>=value` sets either."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from maspo_rl.config.errors import InputError
from maspo_rl.config.load import load


def main(arguments: list[str]) -> int:
    """Judges a file of answers, or serves until stopped. 0 when done."""
    parser = argparse.ArgumentParser(prog="maspo-rl verify", allow_abbrev=False)
    parser.add_argument("file", nargs="?", type=Path, help="JSON lines with output and gold")
    parser.add_argument("--out", type=Path, help="where the lines with verdicts go; without it, standard output")
    parser.add_argument("--serve", action="store_true", help="judge over HTTP on verifier.host and verifier.port")
    parser.add_argument("overrides", nargs="*", help="verifier.<key>=value")
    options = parser.parse_intermixed_args(arguments)
    overrides = list(options.overrides)
    if options.file is not None and "=" in str(options.file):
        overrides.insert(0, str(options.file))
        options.file = None
    config = load(overrides).verifier
    try:
        config.check()
    except ValueError as error:
        raise InputError(str(error)) from error
    if config.replicas:
        raise InputError(
            f"verifier.replicas={config.replicas}: replicas are for runs on a cluster; set verifier.workers"
        )
    if options.serve:
        from maspo_rl.verifier.service import serve  # noqa: PLC0415 - FastAPI takes a second that files need not wait

        serve(config)
        return 0
    if options.file is None:
        raise InputError("verify: name a file of JSON lines with output and gold, or --serve")
    from maspo_rl.verifier.files import verify_file  # noqa: PLC0415

    counts = verify_file(options.file, options.out, config)
    print(", ".join(f"{count} {label}" for label, count in counts.items()), file=sys.stderr)
    return 0
