"""The rows of a data set, from local files or from the hub, as plain dictionaries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from maspo_rl.config.data import DataConfig
from maspo_rl.config.errors import InputError
from maspo_rl.data.columns import value_at

Row = tuple[str, dict[str, Any]]
"""Where a row stands, for messages, and the row."""


def existing_files(files: str | Sequence[str], key: str) -> list[Path]:
    """The paths of one or several files; `key` is what named them. Raises InputError for one that is missing, or whose
    ending is none of ours."""
    paths = []
    for name in [files] if isinstance(files, str) else files:
        path = Path(name).expanduser()
        if not path.is_file():
            raise InputError(f"{key}={name}: no such file; give the path of a .jsonl, .json or .parquet file")
        if path.suffix not in _READERS:
            raise InputError(f"{key}={name}: must end in .jsonl, .json or .parquet; convert it to one of them")
        paths.append(path)
    return paths


def file_rows(files: str | Sequence[str], key: str) -> Iterator[Row]:
    """The rows of one or several .jsonl, .json (a list of objects) and .parquet files.

    Raises InputError as `existing_files` does, and for a file that does not hold what its ending says.
    """
    for path in existing_files(files, key):
        yield from _READERS[path.suffix](path)


def _jsonl(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _object(line, f"{path}, line {number}")


def _object(text: str, place: str) -> Row:
    try:
        row = json.loads(text)
    except ValueError as error:
        raise InputError(f"{place}: is not JSON ({error}); write one object a line") from error
    if not isinstance(row, dict):
        raise InputError(f"{place}: holds a {type(row).__name__} and must hold an object with the columns by name")
    return place, row


def _json(path: Path) -> Iterator[Row]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}); one object a line is .jsonl") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: must hold a list of objects; one object a line is .jsonl")
    yield from ((f"{path}, element {index}", row) for index, row in enumerate(rows))


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow  # type: ignore[import-untyped]  # noqa: PLC0415  not needed by other kinds of files
    import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        batches = pyarrow.parquet.ParquetFile(path).iter_batches()
        rows = (row for batch in batches for row in batch.to_pylist())
        yield from ((f"{path}, row {index}", row) for index, row in enumerate(rows))
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: is not a Parquet file ({error})") from error


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {".jsonl": _jsonl, ".json": _json, ".parquet": _parquet}


def hub_rows(config: DataConfig, split: str) -> Iterator[Row]:
    """The rows of a hub's split. Raises InputError where the hub has no such data set, subset or split."""
    import datasets  # noqa: PLC0415  seconds that local files must not cost

    assert config.hub is not None
    try:
        rows = datasets.load_dataset(config.hub, config.subset, split=split, revision=config.revision)
    except (datasets.exceptions.DatasetNotFoundError, ValueError, OSError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(
            f"data.hub={config.hub}: could not be loaded ({reason}); check name, subset, revision and split, "
            "or give a local copy with data.files="
        ) from error
    yield from ((f"{config.hub} {split}, row {index}", row) for index, row in enumerate(rows))


def at_levels(rows: Iterator[Row], config: DataConfig) -> Iterator[Row]:
    """The rows whose level `data.levels` names; all where it is empty. Raises InputError for a level no row has."""
    if not config.levels:
        yield from rows
        return
    if config.columns.level is None:
        raise InputError(f"data.levels={config.levels}: needs data.columns.level, the column that holds the level")
    seen: set[str] = set()
    for place, row in rows:
        level = str(value_at(row, config.columns.level, "data.columns.level", place))
        seen.add(level)
        if level in config.levels:
            yield place, row
    unknown = [level for level in config.levels if level not in seen]
    if unknown:
        raise InputError(f"data.levels={unknown[0]}: no row has it; levels here: {', '.join(sorted(seen))}")
