"""A TCP proxy in front of one broker that adds the round trip time of a long network line.

    python -m bench.delay_proxy LISTEN_PORT BROKER_HOST BROKER_PORT ROUND_TRIP_MS

Every byte arrives half a round trip after it was sent. As on a real line, the receiver's window
limits the unacknowledged bytes: a byte counts as unacknowledged for a whole round trip. The kernel
reports the window that the receiver announced (`TCP_INFO`), so a client with a small receive buffer
is as slow here as on a real line.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
import time
from collections import deque

CHUNK_BYTES = 1 << 18
SYN_BACKLOG = 128
_SEND_WINDOW = struct.Struct("=I")
_SEND_WINDOW_AT = 228
"""The offset of tcpi_snd_wnd in the kernel's tcp_info (Linux 5.4 and later)."""
_INFO_BYTES = _SEND_WINDOW_AT + _SEND_WINDOW.size


def receive_window(receiver: socket.socket) -> int:
    """Return the receive window that the receiver announced last, in bytes."""
    info = receiver.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    window: int = _SEND_WINDOW.unpack_from(info, _SEND_WINDOW_AT)[0]
    return window


class Direction:
    """One direction of one connection."""

    def __init__(self, sender: socket.socket, receiver: socket.socket, one_way_s: float) -> None:
        self._sender = sender
        self._receiver = receiver
        self._one_way_s = one_way_s
        self._in_transit: deque[tuple[float, bytes]] = deque()
        self._unacknowledged: deque[tuple[float, int]] = deque()
        self._changed = threading.Condition()
        self._open = True

    def start(self) -> None:
        """Start the two threads that receive and deliver bytes."""
        for target in (self._receive, self._deliver):
            threading.Thread(target=target, daemon=True).start()

    def _receive(self) -> None:
        with contextlib.suppress(OSError):
            while chunk := self._sender.recv(min(CHUNK_BYTES, self._window_left())):
                now = time.monotonic()
                self._unacknowledged.append((now + 2 * self._one_way_s, len(chunk)))
                with self._changed:
                    self._in_transit.append((now + self._one_way_s, chunk))
                    self._changed.notify()
        with self._changed:
            self._open = False
            self._changed.notify()

    def _window_left(self) -> int:
        """Return how many bytes the sender may send. Blocks while the window is full."""
        while True:
            now = time.monotonic()
            while self._unacknowledged and self._unacknowledged[0][0] <= now:
                self._unacknowledged.popleft()
            used = sum(size for _, size in self._unacknowledged)
            left = receive_window(self._receiver) - used
            if left > 0:
                return left
            time.sleep(max(0.0005, self._unacknowledged[0][0] - now if used else 0.0))

    def _deliver(self) -> None:
        with contextlib.suppress(OSError):
            while chunk := self._next_due():
                self._receiver.sendall(chunk)
        for end in (self._sender, self._receiver):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _next_due(self) -> bytes:
        """Wait for the next chunk and return it; empty bytes when the connection is closed."""
        with self._changed:
            while not self._in_transit and self._open:
                self._changed.wait()
            if not self._in_transit:
                return b""
            due, chunk = self._in_transit.popleft()
        time.sleep(max(0.0, due - time.monotonic()))
        return chunk


def main() -> None:
    """Serve connections until the process is killed."""
    port, host, broker_port, round_trip_ms = sys.argv[1:]
    one_way_s = float(round_trip_ms) / 2000
    with socket.create_server(("127.0.0.1", int(port)), backlog=SYN_BACKLOG) as server:
        while True:
            client, _ = server.accept()
            broker = socket.create_connection((host, int(broker_port)))
            for end in (client, broker):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Direction(client, broker, one_way_s).start()
            Direction(broker, client, one_way_s).start()


if __name__ == "__main__":
    main()
