"""Every command line in the recipes and the evaluation guide is one that the program takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from maspo_rl.config.evaluation import load_eval
from maspo_rl.config.load import load
from maspo_rl.config.table import load_table
from maspo_rl.run import refuse

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = [
    match.groups()
    for page in [DOCS / "evaluation.md", *sorted((DOCS / "recipes").glob("*.md"))]
    for match in re.finditer(r"^    maspo-rl (\w+) (.*)$", page.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize(("command", "rest"), COMMANDS)
def test_documented(command: str, rest: str, tmp_path: Path) -> None:
    words = shlex.split(rest, comments=True)
    if command == "train":
        refuse(load([*words, f"run.dir={tmp_path}"]))
    elif command == "table":
        load_table(words[0])
    elif "--rescore" not in words:
        load_eval(words)
