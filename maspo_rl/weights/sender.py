"""The learner's end: gathers weights, streams them to the engines, and says what was sent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import deepspeed
import ray
import torch
from torch import Tensor
from vllm.distributed.weight_transfer.base import ParamMeta, TrainerInitInfo, WeightSource
from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo
from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

from maspo_rl.cluster import wait_for
from maspo_rl.weights.digest import RunningDigest
from maspo_rl.weights.shared_memory import SharedMemoryTrainerEngine, SharedMemoryTrainerInfo

if "shared_memory" not in WeightTransferTrainerFactory._registry:
    WeightTransferTrainerFactory.register_engine("shared_memory", SharedMemoryTrainerEngine)


class GatheredSource(WeightSource):
    """The policy's parameters, whole, one after the other; digests them on the way.

    Under ZeRO-3 each parameter is gathered when its turn comes and given back before the next: no second copy of the
    model. All ranks must iterate together.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self.digest = RunningDigest()

    def metadata(self) -> list[ParamMeta]:
        return [
            ParamMeta(name, parameter.dtype, tuple(getattr(parameter, "ds_shape", parameter.shape)))
            for name, parameter in self._module.named_parameters()
        ]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        self.digest = RunningDigest()
        for name, parameter in self._module.named_parameters():
            with deepspeed.zero.GatheredParameters([parameter], enabled=hasattr(parameter, "ds_id")):
                self.digest.add(name, parameter.data)
                yield name, parameter.data


class EngineClient:
    """vLLM's control plane for a weight update over all engine actors, each call with a deadline.

    Engine i holds the transfer ranks 1 + i*tensor_parallel and following, after the learner's rank 0.
    """

    def __init__(self, engines: list[Any], tensor_parallel: int, timeout_s: float) -> None:
        self._engines = engines
        self._tensor_parallel = tensor_parallel
        self._timeout_s = timeout_s

    def _call(self, what: str, *arguments: list[Any]) -> None:
        references = [
            getattr(engine, what).remote(*(values[index] for values in arguments))
            for index, engine in enumerate(self._engines)
        ]
        wait_for(references, seconds=self._timeout_s, who="rollout engines", what=what)

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        infos = [
            init_info | {"rank_offset": 1 + index * self._tensor_parallel} if "rank_offset" in init_info else init_info
            for index in range(len(self._engines))
        ]
        self._call("init_weight_transfer_engine", infos)

    def start_weight_update(self) -> None:
        self._call("start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        self._call("update_weights", [update_info] * len(self._engines))

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._call("finish_weight_update")


class WeightSender:
    """Built on every learner rank; rank 0 sends, the others join the gathering."""

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        rank: int,
        backend: str,
        engines: list[Any],
        tensor_parallel: int,
        timeout_s: float,
    ) -> None:
        self._source = GatheredSource(module)
        self._transfer = WeightTransferTrainerFactory.trainer_init(
            _trainer_info(backend, rank, len(engines) * tensor_parallel),
            client=EngineClient(engines, tensor_parallel, timeout_s),
            source=self._source,
        )

    def send(self) -> str:
        """Sends all weights to all engines and returns the digest of what was sent."""
        self._transfer.send_weights()
        return self._source.digest.hexdigest()


def _trainer_info(backend: str, rank: int, receivers: int) -> TrainerInitInfo:
    if backend == "shared_memory":
        return SharedMemoryTrainerInfo(rank=rank)
    if backend == "ipc":
        return IPCTrainerInitInfo(rank=rank, packed=True)
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = probe.getsockname()[1]
    address = ray.util.get_node_ip_address()
    return NCCLTrainerInitInfo(rank=rank, master_address=address, master_port=port, world_size=1 + receivers)
