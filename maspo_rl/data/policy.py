"""What `model.path` names: the policy in the package, a directory, or a hub name; and its tokenizer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from maspo_rl.config.errors import InputError


def embedded_policy_path() -> Path:
    """The directory of the small policy that the package carries; docs/runs.md says how such a one is made."""
    return Path(__file__).resolve().parents[1] / "assets" / "policy"


def is_hub_name(name: str) -> bool:
    """Whether `name` has the form owner/name."""
    return re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None and not name.startswith(".")


def resolve_model(path: str) -> str:
    """A directory that exists or a hub name, for `from_pretrained`. Raises InputError for anything else."""
    directory = embedded_policy_path() if path == "embedded" else Path(path).expanduser()
    if directory.is_dir():
        if not (directory / "config.json").is_file():
            raise InputError(f"model.path={path}: has no config.json; name a directory that a model was saved to")
        return str(directory)
    if is_hub_name(path):
        return path
    raise InputError(f"model.path={path}: no such directory, and neither 'embedded' nor a hub name owner/name")


def _names_plain_tokenizer(directory: Path) -> bool:
    """Whether a tokenizer of no model's own kind was saved there, as transformers 5 calls it or 4 did."""
    description = directory / "tokenizer_config.json"
    if not description.is_file():
        return False
    try:
        saved = json.loads(description.read_text())
    except ValueError:
        return False  # told by whoever loads it
    return saved.get("tokenizer_class") in ("TokenizersBackend", "PreTrainedTokenizerFast") and "auto_map" not in saved


def load_tokenizer(path: str, revision: str | None = None) -> Any:
    """The tokenizer beside a model. Raises InputError where there is none or the hub does not give it."""
    source = resolve_model(path)
    # Imported here: seconds that a wrong path must not cost. AutoTokenizer imports torch's compiler and sympy, another
    # five and 100 MiB; it would choose the same.
    if _names_plain_tokenizer(Path(source)):
        from transformers import TokenizersBackend as Loader  # noqa: PLC0415
    else:
        from transformers import AutoTokenizer as Loader  # noqa: PLC0415
    try:
        tokenizer = Loader.from_pretrained(source, revision=revision)
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"model.path={path}: no tokenizer could be loaded from it ({reason})") from error
    # transformers 5 makes an empty tokenizer of the model's kind where the tokenizer's files are missing.
    if not tokenizer("1 + 1")["input_ids"]:
        raise InputError(
            f"model.path={path}: no tokenizer could be loaded from it; save the model's tokenizer beside it"
        )
    return tokenizer
