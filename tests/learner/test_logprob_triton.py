"""The GPU's kernels: what they compute, that they compile where there is no GPU, and that a CPU needs none of it.

Each in a process of its own, as Triton's interpreter is chosen where Triton is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
INTERPRET = ["1", "0"] if torch.cuda.is_available() else ["1"]


def output_of(*arguments: str, **environment: str) -> str:
    command = [sys.executable, *arguments]
    run = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.parametrize("interpret", INTERPRET)
def test_kernels_give_what_the_formulas_give(interpret: str) -> None:
    pytest_options = ["-m", "pytest", "-p", "no:cacheprovider"]
    assert " passed" in output_of(*pytest_options, str(HERE / "triton_kernels.py"), TRITON_INTERPRET=interpret)


def test_kernels_compile_for_gpus(tmp_path: Path) -> None:
    lines = output_of(str(HERE / "triton_compiled.py"), TRITON_INTERPRET="0", TRITON_CACHE_DIR=str(tmp_path))
    compiled = {tuple(line.split()) for line in lines.splitlines()}
    kernels, gpus = ("_observe", "_likely", "_differentiate"), ("sm_80", "sm_90")
    types = ("*bf16", "*fp16", "*fp32")
    assert compiled == {(kernel, kind, gpu, "True") for kernel in kernels for kind in types for gpu in gpus}


def test_a_cpu_needs_no_triton() -> None:
    code = """
import sys
sys.modules["triton"] = None  # an import of it fails
import torch
from maspo_rl.learner.logprob import score_tokens
hidden, weight = torch.randn(3, 4), torch.randn(5, 4, requires_grad=True)
target = torch.tensor([0, 1, 4])
scores = score_tokens(hidden, weight, None, target, temperature=1.0, entropy_gradient=True, proxy_kappa=None)
sum(score.sum() for score in scores).backward()
"""
    output_of("-c", code)
