"""A TCP proxy in front of one broker.

It can close connections, delay responses, drop the responses to produce requests, and hold
everything, as a network does that is cut and comes back. A delay does not limit the throughput. The
proxy reads requests frame by frame to recognise produce requests; it forwards responses as bytes.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from sparkmirror.wire.net.address import Address

PRODUCE = 0
_REQUEST_HEAD = struct.Struct(">ih")
_CHUNK = 1 << 16

_DelayedResponses = queue.SimpleQueue[tuple[float, bytes]]
"""Delayed responses, each with the time to send it."""


@dataclass(slots=True, eq=False)
class _ProxiedConnection:
    """One connection through the proxy."""

    client: socket.socket
    broker: socket.socket
    has_produced: bool = False
    last_produce_at: float = float("-inf")
    """When the last produce request arrived."""

    def close(self) -> None:
        for end in (self.client, self.broker):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class BrokerProxy:
    """Listens at once; serves after `forward_to`. Use: `with BrokerProxy() as proxy:`."""

    host: str = "127.0.0.1"
    """The address at which the proxy listens."""
    delay_s: float = 0.0
    """The delay of every response."""
    drops_produce_responses: bool = False
    """Whether the proxy drops responses to produce requests."""
    dropped_responses: int = 0
    """How many parts of responses the proxy has dropped."""
    produce_requests: int = 0
    """How many produce requests arrived."""
    pipelined_requests: int = 0
    """How many produce requests arrived before the response to the one before them."""
    _is_connected: threading.Event = field(default_factory=threading.Event)
    """Whether the proxy forwards; otherwise it holds everything."""
    _server: socket.socket = field(init=False)
    _broker: Address | None = None
    _connections: set[_ProxiedConnection] = field(default_factory=set)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> BrokerProxy:
        self._server = socket.create_server((self.host, 0))
        self._is_connected.set()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._is_connected.set()
        self.cut_connections()
        for thread in self._threads:
            thread.join(timeout=5)

    @property
    def address(self) -> str:
        """The address of the proxy, as host:port."""
        return f"{self.host}:{self._server.getsockname()[1]}"

    def forward_to(self, broker: Address) -> None:
        """Accept connections and forward each to this broker."""
        self._broker = broker
        self._start_thread(self._accept)

    def drop_produce_responses(self) -> None:
        """Drop all later responses to produce requests, and count them from 0."""
        self.dropped_responses = 0
        self.drops_produce_responses = True

    def reset_counts(self) -> None:
        """Count produce requests from 0."""
        self.produce_requests = self.pipelined_requests = 0

    def cut_connections(self) -> None:
        """Close every connection."""
        for connection in list(self._connections):
            connection.close()

    def hold(self) -> None:
        """Forward nothing, in both directions, as a network that is cut. Nothing is closed."""
        self._is_connected.clear()

    def release(self) -> None:
        """Forward again, first what was sent meanwhile, as TCP does when a network comes back."""
        self._is_connected.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self._is_connected.wait()
            assert self._broker
            try:
                broker = socket.create_connection(self._broker, timeout=5)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            connection = _ProxiedConnection(client, broker)
            self._connections.add(connection)
            self._start_thread(partial(self._forward, connection))

    def _forward(self, connection: _ProxiedConnection) -> None:
        """Forward in both directions until one side closes."""
        responses = threading.Thread(
            target=self._forward_responses, args=(connection,), daemon=True
        )
        responses.start()
        with contextlib.suppress(OSError):
            while frame := _read_request(connection.client):
                if _REQUEST_HEAD.unpack_from(frame)[1] == PRODUCE:
                    self._count_produce(connection)
                self._is_connected.wait()
                connection.broker.sendall(frame)
        connection.close()
        responses.join()
        self._connections.discard(connection)
        connection.client.close()
        connection.broker.close()

    def _count_produce(self, connection: _ProxiedConnection) -> None:
        """Count a request. It did not wait for a response if it arrives within the delay."""
        now = time.monotonic()
        self.produce_requests += 1
        self.pipelined_requests += now - connection.last_produce_at < self.delay_s
        connection.has_produced, connection.last_produce_at = True, now

    def _forward_responses(self, connection: _ProxiedConnection) -> None:
        """Receive responses from the broker; a second thread sends each after the delay."""
        delayed: _DelayedResponses = queue.SimpleQueue()
        sender = threading.Thread(target=_send_delayed, args=(connection, delayed), daemon=True)
        sender.start()
        with contextlib.suppress(OSError):
            while chunk := connection.broker.recv(_CHUNK):
                self._is_connected.wait()
                if self.drops_produce_responses and connection.has_produced:
                    self.dropped_responses += 1
                else:
                    delayed.put((time.monotonic() + self.delay_s, chunk))
        delayed.put((0.0, b""))
        sender.join()
        connection.close()

    def _start_thread(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()


def _send_delayed(connection: _ProxiedConnection, delayed: _DelayedResponses) -> None:
    """Send each response at its time. An empty response is the last one."""
    with contextlib.suppress(OSError):
        while (due := delayed.get())[1]:
            time.sleep(max(due[0] - time.monotonic(), 0.0))
            connection.client.sendall(due[1])


def _read_request(sock: socket.socket) -> bytes:
    """Return one request with its length; empty if the client has closed."""
    head = _read_exactly(sock, 4)
    return head + _read_exactly(sock, int.from_bytes(head, "big")) if head else b""


def _read_exactly(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        chunk = sock.recv(min(size - len(parts), _CHUNK))
        if not chunk:
            return b""
        parts += chunk
    return bytes(parts)
