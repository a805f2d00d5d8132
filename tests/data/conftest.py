"""The tokenizer of the policy in the package, and a way to write small data sets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maspo_rl.data import load_tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return load_tokenizer("embedded")


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., str]:
    """Writes rows to a JSONL file and returns its path."""

    def write(*rows: dict[str, Any], name: str = "rows.jsonl") -> str:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return str(path)

    return write
