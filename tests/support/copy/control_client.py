"""A client of the control server: sends messages and collects those it receives."""

from __future__ import annotations

import select
import time
from typing import Self, TypeVar

from sparkmirror.copy.control.connection import ControlConnection
from sparkmirror.copy.control.encryption import NONCE_BYTES, HandshakeKeys
from sparkmirror.copy.control.messages import ControlMessage, Hello
from sparkmirror.engine.control_endpoint import ControlEndpoint

M = TypeVar("M", bound=ControlMessage)


def task_hello(task: int, attempt: int = 0) -> Hello:
    """Return the hello of a task attempt."""
    return Hello(task=task, attempt=attempt, host="here", pid=1)


def handshake_keys(secret: bytes = b"secret", nonce: bytes = b"n") -> HandshakeKeys:
    """Return the keys of a connection with fixed nonces."""
    return HandshakeKeys.derive(secret, nonce * NONCE_BYTES, nonce * NONCE_BYTES)


class ControlClient:
    """One connection to a control server."""

    def __init__(self, endpoint: ControlEndpoint) -> None:
        self.received: list[ControlMessage] = []
        self._connection = ControlConnection.connect(
            endpoint.address, endpoint.protocol, endpoint.secret, self.received.append
        )

    def send(self, *messages: ControlMessage) -> None:
        for message in messages:
            self._connection.send(message)

    def receive(self, kind: type[M], within_s: float = 50.0) -> M:
        """Wait for the next message of a type; drop the messages before it."""
        deadline = time.monotonic() + within_s
        while True:
            while self.received:
                message = self.received.pop(0)
                if isinstance(message, kind):
                    return message
            if not select.select([self._connection], [], [], max(deadline - time.monotonic(), 0))[
                0
            ]:
                raise AssertionError(f"no {kind.__name__} within {within_s:.0f} s")
            self._connection.on_readable()

    def finish(self) -> None:
        """Close gracefully, as a task does."""
        self._connection.close_gracefully()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
