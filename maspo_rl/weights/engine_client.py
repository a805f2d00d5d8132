"""The learner's control of a weight update on all engines."""

from __future__ import annotations

from typing import Any

from maspo_rl.cluster import wait_for


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
        wait_for(
            references,
            seconds=self._timeout_s,
            who="rollout engine",
            what=what,
            remedy="learner.timeout_s",
            waiter="learner rank 0",
        )

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        infos = [
            init_info | {"rank_offset": 1 + index * self._tensor_parallel} if "rank_offset" in init_info else init_info
            for index in range(len(self._engines))
        ]
        self._call("init_weight_transfer_engine", infos)

    def take_weights(self) -> None:
        """A whole update in one call, for engines that find the weights where they lie."""
        self._call("take_weights")

    def start_weight_update(self) -> None:
        self._call("start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        self._call("update_weights", [update_info] * len(self._engines))

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._call("finish_weight_update")
