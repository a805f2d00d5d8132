"""JSON lines in, the same lines with verdicts out."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from maspo_rl.config.errors import InputError
from maspo_rl.config.verifier import UNNAMED_DATASET, VerifierConfig
from maspo_rl.verifier.verifier import Question, Verifier

_ROWS_AT_ONCE = 2048


def question_of(row: Any, where: str) -> Question:
    """The question in a row: `output` (string), `gold` (string or number); `dataset` and `truncated` if it has them.

    Raises InputError naming `where`.
    """
    if not isinstance(row, dict):
        raise InputError(f"{where}: a row must be a JSON object with output and gold, not {type(row).__name__}")
    output, gold = row.get("output"), row.get("gold")
    dataset, truncated = row.get("dataset", UNNAMED_DATASET), row.get("truncated", False)
    if not isinstance(output, str):
        raise InputError(f"{where}: output must be a string, not {json.dumps(output)[:40]}")
    if "gold" not in row or isinstance(gold, list | dict | bool):
        raise InputError(f"{where}: gold must be a string or a number, not {json.dumps(gold)[:40]}")
    if not isinstance(dataset, str):
        raise InputError(f"{where}: dataset must be a string, not {json.dumps(dataset)[:40]}")
    if not isinstance(truncated, bool):
        raise InputError(f"{where}: truncated must be true or false, not {json.dumps(truncated)[:40]}")
    return Question(output, "" if gold is None else str(gold), dataset, truncated)


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
    with partial.open("w", encoding="utf-8") as stream:
        counts = _judge_rows(path_in, stream, config)
    os.replace(partial, path_out)
    return counts


def _judge_rows(path: Path, stream: TextIO, config: VerifierConfig) -> dict[str, int]:
    counts: Counter[str] = Counter()
    with Verifier(config) as verifier:
        pending: list[tuple[dict[str, Any], Question]] = []
        for entry in _rows(path):
            pending.append(entry)
            if len(pending) == _ROWS_AT_ONCE:
                counts += _write(pending, verifier, stream)
                pending = []
        counts += _write(pending, verifier, stream)
    return dict(counts)


def _write(entries: list[tuple[dict[str, Any], Question]], verifier: Verifier, stream: TextIO) -> Counter[str]:
    verdicts = verifier.judge_many([question for _, question in entries])
    for (row, _), verdict in zip(entries, verdicts, strict=True):
        added = {
            "verdict": verdict.label.value,
            "reward": verdict.reward,
            "extracted": verdict.extracted,
            "reason": verdict.reason,
            "seconds": round(verdict.seconds, 6),
        }
        stream.write(json.dumps(row | added) + "\n")
    return Counter(verdict.label.value for verdict in verdicts)
