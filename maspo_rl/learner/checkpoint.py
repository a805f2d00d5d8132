"""A rank's share of a checkpoint: DeepSpeed's state, our counters, and the exported policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

_TAG = "learner"


def save(engine: Any, model: Any, directory: Path, state: dict[str, Any], rank: int, source: str) -> None:
    """Writes `directory/learner` (DeepSpeed) and `directory/policy` (for transformers and vLLM).

    All ranks call it together; the files of rank r hold its share, its random states and `state`.
    """
    randomness = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        randomness["cuda"] = torch.cuda.get_rng_state()
    engine.save_checkpoint(str(directory), tag=_TAG, client_state={**state, "rng": randomness}, save_latest=False)
    weights = _gathered(model, keep=rank == 0)
    if rank == 0:
        from transformers import AutoTokenizer  # noqa: PLC0415

        model.save_pretrained(directory / "policy", state_dict=weights)
        AutoTokenizer.from_pretrained(source).save_pretrained(directory / "policy")
    torch.distributed.barrier()


def load(engine: Any, directory: Path) -> dict[str, Any]:
    """Restores what `save` wrote and returns its `state`.

    Raises:
        FileNotFoundError: there is no learner state in `directory`.
    """
    path, state = engine.load_checkpoint(str(directory), tag=_TAG)
    if path is None:
        raise FileNotFoundError(f"no learner state in {directory}")
    torch.set_rng_state(state["rng"]["torch"])
    if torch.cuda.is_available():
        torch.cuda.set_rng_state(state["rng"]["cuda"])
    return dict(state)


def _gathered(model: Any, *, keep: bool) -> dict[str, torch.Tensor]:
    """Whole weights on the host where `keep`; under ZeRO-3 one parameter is gathered at a time, by all ranks."""
    import deepspeed  # noqa: PLC0415 - chooses its accelerator when imported, which the driver must not

    whole = {}
    for name, parameter in model.named_parameters():
        split = hasattr(parameter, "ds_id")
        with deepspeed.zero.GatheredParameters([parameter], enabled=split):
            if keep:
                weights = parameter.detach().cpu()
                whole[name] = weights.clone() if split else weights
    return whole
