"""One shared-memory segment between learner and engines on one CPU machine: the learner's end.

All tensors lie side by side in the segment and the engines read them from there: no copy out before the engine's own
loader, and none in without ZeRO, as the learner's weights themselves then lie there. With ZeRO, whose weights are in
buffers of its own, the sending rank copies them in. The segment's name is removed as soon as every engine has opened
it, so that nothing is left behind however the processes end.

Nothing here imports vLLM, which would cost the learner ten seconds and several hundred MiB; the engines' end, a vLLM
transfer engine, is in `receiver`.
"""

from __future__ import annotations

from multiprocessing.shared_memory import SharedMemory

import torch

from maspo_rl.cluster.faults import fault_point
from maspo_rl.weights.engine_client import EngineClient
from maspo_rl.weights.layout import Segment, offsets
from maspo_rl.weights.source import GatheredSource


class SharedMemorySender:
    """Rank 0's end: opens the segment with the engines, moves the weights there if they are `movable`, and has the
    engines read at each update."""

    def __init__(self, client: EngineClient, source: GatheredSource, *, movable: bool) -> None:
        self._client = client
        self._source = source
        metadata = source.metadata()
        *_, length = offsets(metadata)
        memory = SharedMemory(create=True, size=max(length, 1))
        try:
            client.init_weight_transfer_engine(
                {
                    "segment": memory.name,
                    "names": [item.name for item in metadata],
                    "dtype_names": [str(item.dtype).removeprefix("torch.") for item in metadata],
                    "shapes": [list(item.shape) for item in metadata],
                }
            )
        finally:
            memory.unlink()
        self._segment = Segment(memory, metadata)
        if movable:
            source.move_into(self._segment.tensors)

    def send_weights(self) -> str:
        """One update of all engines; the digest of what was sent."""
        digest = self._segment.fill(self._source)
        harmed = self._segment.tensors[0][1].view(torch.uint8).view(-1)[:1]
        harm = int(fault_point("learner_0", "sent") == "corrupt")
        harmed ^= harm
        try:
            self._client.take_weights()
        finally:
            harmed ^= harm
        return digest
