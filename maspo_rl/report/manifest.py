"""What a complete folder holds, so that a torn or foreign one is refused by name."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_NAME = "manifest.json"
_FORMAT = 1


def write_manifest(folder: Path, facts: dict[str, Any]) -> None:
    """Lists every file under `folder` with its length and SHA-256, beside `facts` about the whole."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    with ThreadPoolExecutor() as threads:
        hashes = list(threads.map(_sha256, files))
    listed = {
        str(file.relative_to(folder)): {"bytes": file.stat().st_size, "sha256": digest}
        for file, digest in zip(files, hashes, strict=True)
    }
    manifest = {"format": _FORMAT, **facts, "files": listed}
    (folder / _NAME).write_text(json.dumps(manifest, indent=1))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a whole folder. Raises ValueError with the first thing that is wrong with it."""
    try:
        manifest: dict[str, Any] = json.loads((folder / _NAME).read_text())
    except FileNotFoundError:
        raise ValueError(f"{folder} has no {_NAME}: it is not a complete checkpoint") from None
    except ValueError:
        raise ValueError(f"{folder / _NAME} is not JSON: the checkpoint was cut short") from None
    if manifest.get("format") != _FORMAT:
        raise ValueError(f"{folder / _NAME} has format {manifest.get('format')}, this version reads {_FORMAT}")
    for name, expected in manifest["files"].items():
        file = folder / name
        if not file.is_file():
            raise ValueError(f"{file} is missing")
        if file.stat().st_size != expected["bytes"]:
            raise ValueError(f"{file} has {file.stat().st_size} bytes, its manifest says {expected['bytes']}")
    with ThreadPoolExecutor() as threads:
        hashes = threads.map(lambda name: _sha256(folder / name), manifest["files"])
        for (name, expected), digest in zip(manifest["files"].items(), hashes, strict=True):
            if digest != expected["sha256"]:
                raise ValueError(f"{folder / name} does not hold what its manifest says")
    return manifest


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
