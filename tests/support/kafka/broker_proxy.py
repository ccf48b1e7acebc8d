"""A TCP proxy in front of one broker, so that a test decides what the other side never hears.

It can cut connections, delay answers, and swallow those to produce requests.

Reads requests frame by frame, to tell produce requests from others; answers pass as they come. A
delay is a long way, not a narrow one: it takes nothing of the throughput.
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
"""Answers that are late on purpose, each with the time when it is due."""


@dataclass(slots=True, eq=False)
class _ProxiedConnection:
    """One connection through the proxy."""

    client: socket.socket
    broker: socket.socket
    has_produced: bool = False
    last_produce_at: float = float("-inf")
    """When the last produce request came."""

    def close(self) -> None:
        for end in (self.client, self.broker):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class BrokerProxy:
    """Listens at once; begins to serve with `lead_to`. Use: `with Proxy() as proxy:`."""

    delay_s: float = 0.0
    """How long every answer is under way; however many are."""
    drops_produce_responses: bool = False
    """Whether answers to produce requests are swallowed from now on."""
    dropped_responses: int = 0
    """How many pieces of such answers there were."""
    produce_requests: int = 0
    """How many produce requests there were."""
    pipelined_requests: int = 0
    """How many of them came before the one before them, on the same connection, was answered."""
    _server: socket.socket = field(init=False)
    _broker: Address | None = None
    _connections: set[_ProxiedConnection] = field(default_factory=set)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> BrokerProxy:
        self._server = socket.create_server(("127.0.0.1", 0))
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut_connections()
        for thread in self._threads:
            thread.join(timeout=5)

    @property
    def address(self) -> str:
        """Where to connect to."""
        return f"127.0.0.1:{self._server.getsockname()[1]}"

    def forward_to(self, broker: Address) -> None:
        """Serve, leading everybody to this broker."""
        self._broker = broker
        self._start_thread(self._accept)

    def drop_produce_responses(self) -> None:
        """Let no answer to a produce request through any more, and begin to count."""
        self.dropped_responses = 0
        self.drops_produce_responses = True

    def reset_counts(self) -> None:
        """Begin to count produce requests."""
        self.produce_requests = self.pipelined_requests = 0

    def cut_connections(self) -> None:
        """Cut every connection."""
        for line in list(self._connections):
            line.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            assert self._broker
            try:
                broker = socket.create_connection(self._broker, timeout=5)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            line = _ProxiedConnection(client, broker)
            self._connections.add(line)
            self._start_thread(partial(self._forward, line))

    def _forward(self, line: _ProxiedConnection) -> None:
        """Carry both ways until one end is gone."""
        answers = threading.Thread(target=self._forward_responses, args=(line,), daemon=True)
        answers.start()
        with contextlib.suppress(OSError):
            while frame := _read_request(line.client):
                if _REQUEST_HEAD.unpack_from(frame)[1] == PRODUCE:
                    self._count_produce(line)
                line.broker.sendall(frame)
        line.close()
        answers.join()
        self._connections.discard(line)
        line.client.close()
        line.broker.close()

    def _count_produce(self, line: _ProxiedConnection) -> None:
        """An answer takes as long as the delay, at least: what comes sooner did not wait for it."""
        now = time.monotonic()
        self.produce_requests += 1
        self.pipelined_requests += now - line.last_produce_at < self.delay_s
        line.has_produced, line.last_produce_at = True, now

    def _forward_responses(self, line: _ProxiedConnection) -> None:
        """Take answers from the broker as they come; each is delivered when its time has come."""
        under_way: _DelayedResponses = queue.SimpleQueue()
        delivery = threading.Thread(target=_send_delayed, args=(line, under_way), daemon=True)
        delivery.start()
        with contextlib.suppress(OSError):
            while chunk := line.broker.recv(_CHUNK):
                if self.drops_produce_responses and line.has_produced:
                    self.dropped_responses += 1
                else:
                    under_way.put((time.monotonic() + self.delay_s, chunk))
        under_way.put((0.0, b""))
        delivery.join()
        line.close()

    def _start_thread(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()


def _send_delayed(line: _ProxiedConnection, under_way: _DelayedResponses) -> None:
    """Hand answers over, each at its time, until the last, which is empty."""
    with contextlib.suppress(OSError):
        while (due := under_way.get())[1]:
            time.sleep(max(due[0] - time.monotonic(), 0.0))
            line.client.sendall(due[1])


def _read_request(sock: socket.socket) -> bytes:
    """One request with its length; nothing when the other end has hung up."""
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
