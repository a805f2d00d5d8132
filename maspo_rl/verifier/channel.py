"""Messages between the pool and its children: JSON lines over a pair of sockets."""

from __future__ import annotations

import json
import select
import socket
import time
from typing import Any

Message = dict[str, Any]


class Channel:
    """One end. A wait raises TimeoutError at its deadline (time.monotonic seconds; None: there is none).

    Raises ConnectionError when the other end is gone.
    """

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._received = b""

    def send(self, message: Message, deadline: float | None = None) -> None:
        self._limit(deadline)
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, deadline: float | None = None) -> Any:
        """The next message. Raises ValueError for what is left of one whose reader died over it."""
        while b"\n" not in self._received:
            self._limit(deadline)
            if not (chunk := self.socket.recv(65536)):
                raise ConnectionResetError("the other end was closed")
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return json.loads(line)

    def has_message(self) -> bool:
        return b"\n" in self._received or bool(select.select([self.socket], [], [], 0)[0])

    def _limit(self, deadline: float | None) -> None:
        self.socket.settimeout(None if deadline is None else max(deadline - time.monotonic(), 0.001))
