"""JSON lines in, the same lines with verdicts out."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import UnionType
from typing import Any, TextIO

from maspo_rl.config.errors import InputError, naming
from maspo_rl.config.verifier import UNNAMED_DATASET, VerifierConfig
from maspo_rl.types import Verdict
from maspo_rl.verifier.verifier import Question, Verifier

_ROWS_AT_ONCE = 2048


_FIELDS: dict[str, tuple[type | UnionType, str]] = {
    "output": (str, "a string"),
    "gold": (str | int | float | None, "a string or a number"),
    "dataset": (str, "a string"),
    "truncated": (bool, "true or false"),
}


def question_of(row: Any, where: str) -> Question:
    """The question in a row: `output` (string), `gold` (string or number); `dataset` and `truncated` if it has them.

    Raises InputError naming `where`.
    """
    if not isinstance(row, dict) or not {"output", "gold"} <= row.keys():
        raise InputError(f"{where}: a row must be a JSON object with output and gold, not {json.dumps(row)[:40]}")
    values: dict[str, Any] = {"dataset": UNNAMED_DATASET, "truncated": False} | row
    for name, (kind, words) in _FIELDS.items():
        if not isinstance(values[name], kind) or (name == "gold" and isinstance(values[name], bool)):
            raise InputError(f"{where}: {name} must be {words}, not {json.dumps(values[name])[:40]}")
    gold = "" if values["gold"] is None else str(values["gold"])
    return Question(values["output"], gold, values["dataset"], values["truncated"])


def as_row(verdict: Verdict) -> dict[str, Any]:
    """A verdict as files and HTTP spell it."""
    return {
        "verdict": verdict.label.value,
        "reward": verdict.reward,
        "extracted": verdict.extracted,
        "reason": verdict.reason,
        "seconds": round(verdict.seconds, 6),
    }


def _rows(path: Path) -> Iterator[tuple[dict[str, Any], Question]]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a file of JSON lines with output and gold")
    with path.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InputError(f"{path}:{number}: not JSON ({error})") from error
            yield row, question_of(row, f"{path}:{number}")


def verify_file(path_in: Path, path_out: Path | None, config: VerifierConfig) -> dict[str, int]:
    """Judge every row of `path_in`; write rows with verdict, reward, extracted, reason and seconds added.

    To standard output where `path_out` is None; else `path_out` is complete or untouched. The whole file is checked
    before the first judgement. Returns the number of rows by label. Raises InputError for a malformed row.
    """
    for _ in _rows(path_in):
        pass
    if path_out is None:
        return _judge_rows(path_in, sys.stdout, config)
    if not path_out.parent.is_dir():
        raise InputError(f"{path_out}: its directory does not exist; create {path_out.parent} first")
    partial = path_out.with_name(path_out.name + ".partial")
    with naming(partial), partial.open("w", encoding="utf-8") as stream:
        counts = _judge_rows(path_in, stream, config)
    os.replace(partial, path_out)
    return counts


def _judge_rows(path: Path, stream: TextIO, config: VerifierConfig) -> dict[str, int]:
    counts: Counter[str] = Counter()
    rows = _rows(path)
    with Verifier(config) as verifier:
        while entries := list(islice(rows, _ROWS_AT_ONCE)):
            verdicts = verifier.judge_many([question for _, question in entries])
            counts.update(verdict.label.value for verdict in verdicts)
            stream.writelines(
                json.dumps(row | as_row(verdict)) + "\n" for (row, _), verdict in zip(entries, verdicts, strict=True)
            )
    return dict(counts)
