"""Messages between the pool and its children: four bytes of length, then UTF-8 JSON."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from io import RawIOBase
from typing import Any

Message = dict[str, Any]
_LENGTH = struct.Struct(">I")


class PeerGoneError(Exception):
    """The other end of the pipe was closed."""


class DeadlineError(Exception):
    """No whole message arrived in time."""


def encode(message: Message) -> bytes:
    body = json.dumps(message).encode()
    return _LENGTH.pack(len(body)) + body


def read_blocking(stream: RawIOBase) -> Message:
    """Read one message; for the child, which has nothing else to do. Raises PeerGoneError at the end of the pipe."""
    header = _exactly(stream, _LENGTH.size)
    message: Message = json.loads(_exactly(stream, _LENGTH.unpack(header)[0]))
    return message


def _exactly(stream: RawIOBase, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = stream.read(size - len(received))
        if not chunk:
            raise PeerGoneError
        received += chunk
    return bytes(received)


def read_within(descriptor: int, deadline: float) -> Message:
    """Read one message from a pipe before `deadline` (time.monotonic seconds).

    Raises DeadlineError when it passes first and PeerGoneError when the writer is gone.
    """
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    received = bytearray()
    wanted = _LENGTH.size
    while len(received) < wanted:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not poller.poll(remaining * 1000):
            raise DeadlineError
        chunk = os.read(descriptor, wanted - len(received))
        if not chunk:
            raise PeerGoneError
        received += chunk
        if wanted == _LENGTH.size and len(received) == wanted:
            wanted += _LENGTH.unpack(received)[0]
    message: Message = json.loads(received[_LENGTH.size :])
    return message


def write_within(descriptor: int, message: Message, deadline: float) -> None:
    """Write one message to a non-blocking pipe before `deadline`; errors as `read_within`."""
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT)
    pending = memoryview(encode(message))
    while pending:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not poller.poll(remaining * 1000):
            raise DeadlineError
        try:
            pending = pending[os.write(descriptor, pending) :]
        except BrokenPipeError as error:
            raise PeerGoneError from error
