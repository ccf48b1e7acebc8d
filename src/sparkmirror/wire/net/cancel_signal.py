"""A signal that ends waiting: any thread sets it once, and it stays set.

The thread that waits may wait for sockets at the same time: a selector watches `fileno()`, which is
readable when the signal is set.
"""

from __future__ import annotations

import socket
import threading


class CancelSignal:
    """Not set at first. Close it if a selector has watched it."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        """A pair to read from and to write to. Made for the first selector."""

    def is_set(self) -> bool:
        """Whether the signal is set."""
        return self._event.is_set()

    def set(self) -> None:
        """Set the signal. Any thread may call this, also after `close`."""
        with self._lock:
            was_set = self._event.is_set()
            self._event.set()
            if self._sockets is not None and not was_set:
                self._sockets[1].send(b"\0")

    def wait(self, seconds: float) -> None:
        """Wait until the signal is set, at most so long."""
        self._event.wait(seconds)

    def fileno(self) -> int:
        """For a selector."""
        with self._lock:
            if self._sockets is None:
                self._sockets = socket.socketpair()
                if self._event.is_set():
                    self._sockets[1].send(b"\0")
            return self._sockets[0].fileno()

    def close(self) -> None:
        """Close the sockets. May be called again."""
        with self._lock:
            for one in self._sockets or ():
                one.close()
            self._sockets = None
