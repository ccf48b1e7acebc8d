"""A channel for event loops that counts its events."""

from __future__ import annotations

import socket

from sparkmirror.errors import ClusterUnavailable


class Receiver:
    """Counts the bytes that it receives, and the calls to write. `sender` is the other end."""

    wants_write = False

    def __init__(self) -> None:
        self.sender, self._socket = socket.socketpair()
        self._socket.setblocking(False)
        self.received = self.written = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def on_readable(self) -> None:
        try:
            data = self._socket.recv(100)
        except BlockingIOError:
            return
        if not data:
            raise ClusterUnavailable("source", "the connection is closed")
        self.received += len(data)

    def on_writable(self) -> None:
        self.written += 1
        self.wants_write = False

    def close(self) -> None:
        self.sender.close()
        self._socket.close()
