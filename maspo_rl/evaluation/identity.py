"""What exactly was measured: digests of model, prompts and verifier."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from maspo_rl import verifier
from maspo_rl.config.verifier import VerifierConfig
from maspo_rl.data import resolve_model
from maspo_rl.types import Prompt

_BLOCK_BYTES = 1 << 22


def model_digest(path: str, revision: str | None) -> str:
    """BLAKE2b over the weights and `config.json` of a directory, or a hub model's commit where it is on this machine.

    A hub model that is not: its name and revision, as they were asked for.
    """
    source = resolve_model(path)
    if not Path(source).is_dir():
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415  half a second that only hub models pay

        found = try_to_load_from_cache(source, "config.json", revision=revision)
        return f"commit {Path(found).parent.name}" if isinstance(found, str) else f"{source}@{revision or 'default'}"
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted([*Path(source).glob("*.safetensors"), *Path(source).glob("*.bin"), Path(source, "config.json")]):
        digest.update(file.name.encode())
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK_BYTES):
                digest.update(block)
    return f"blake2b {digest.hexdigest()}"


def prompts_digest(prompts: Iterable[Prompt]) -> str:
    """16 hexadecimal digits over the prompts' ids, which follow from problem and gold, and their token ids."""
    return short_digest([(prompt.id, prompt.token_ids) for prompt in prompts])


@cache
def _code() -> str:
    folder = Path(verifier.__file__).parent
    return short_digest({file.name: file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.py"))})


def verifier_version(config: VerifierConfig) -> dict[str, Any]:
    """Release and code of the verifier, the judge it falls back to, and the settings that can change a verdict."""
    settings = asdict(config)
    kept = ("extraction", "deadline_s", "max_answer_chars", "function", "correct_reward")
    return {
        "maspo_rl": version("maspo_rl"),
        "code": _code(),
        "math_verify": version("math-verify"),
        "settings": {key: settings[key] for key in kept},
    }


def short_digest(value: Any) -> str:
    """16 hexadecimal digits of SHA-256 over `value` as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
