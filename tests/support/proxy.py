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

from sparkmirror.wire.place import Address

PRODUCE = 0
_HEAD = struct.Struct(">ih")
_CHUNK = 1 << 16

_UnderWay = queue.SimpleQueue[tuple[float, bytes]]
"""Answers that are late on purpose, each with the time when it is due."""


@dataclass(slots=True, eq=False)
class _Line:
    """One connection through the proxy."""

    client: socket.socket
    broker: socket.socket
    produces: bool = False
    produced_at: float = float("-inf")
    """When the last produce request came."""

    def close(self) -> None:
        for end in (self.client, self.broker):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class Proxy:
    """Listens at once; begins to serve with `lead_to`. Use: `with Proxy() as proxy:`."""

    delay_s: float = 0.0
    """How long every answer is under way; however many are."""
    is_deaf: bool = False
    """Whether answers to produce requests are swallowed from now on."""
    swallowed: int = 0
    """How many pieces of such answers there were."""
    produced: int = 0
    """How many produce requests there were."""
    unanswered: int = 0
    """How many of them came before the one before them, on the same connection, was answered."""
    _server: socket.socket = field(init=False)
    _broker: Address | None = None
    _lines: set[_Line] = field(default_factory=set)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Proxy:
        self._server = socket.create_server(("127.0.0.1", 0))
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()
        for thread in self._threads:
            thread.join(timeout=5)

    @property
    def address(self) -> str:
        """Where to connect to."""
        return f"127.0.0.1:{self._server.getsockname()[1]}"

    def lead_to(self, broker: Address) -> None:
        """Serve, leading everybody to this broker."""
        self._broker = broker
        self._spawn(self._accept)

    def swallow_answers(self) -> None:
        """Let no answer to a produce request through any more, and begin to count."""
        self.swallowed = 0
        self.is_deaf = True

    def count_anew(self) -> None:
        """Begin to count produce requests."""
        self.produced = self.unanswered = 0

    def cut(self) -> None:
        """Cut every connection."""
        for line in list(self._lines):
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
            line = _Line(client, broker)
            self._lines.add(line)
            self._spawn(partial(self._carry, line))

    def _carry(self, line: _Line) -> None:
        """Carry both ways until one end is gone."""
        answers = threading.Thread(target=self._carry_answers, args=(line,), daemon=True)
        answers.start()
        with contextlib.suppress(OSError):
            while frame := _frame(line.client):
                if _HEAD.unpack_from(frame)[1] == PRODUCE:
                    self._count(line)
                line.broker.sendall(frame)
        line.close()
        answers.join()
        self._lines.discard(line)
        line.client.close()
        line.broker.close()

    def _count(self, line: _Line) -> None:
        """An answer takes as long as the delay, at least: what comes sooner did not wait for it."""
        now = time.monotonic()
        self.produced += 1
        self.unanswered += now - line.produced_at < self.delay_s
        line.produces, line.produced_at = True, now

    def _carry_answers(self, line: _Line) -> None:
        """Take answers from the broker as they come; each is delivered when its time has come."""
        under_way: _UnderWay = queue.SimpleQueue()
        delivery = threading.Thread(target=_deliver, args=(line, under_way), daemon=True)
        delivery.start()
        with contextlib.suppress(OSError):
            while chunk := line.broker.recv(_CHUNK):
                if self.is_deaf and line.produces:
                    self.swallowed += 1
                else:
                    under_way.put((time.monotonic() + self.delay_s, chunk))
        under_way.put((0.0, b""))
        delivery.join()
        line.close()

    def _spawn(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()


def _deliver(line: _Line, under_way: _UnderWay) -> None:
    """Hand answers over, each at its time, until the last, which is empty."""
    with contextlib.suppress(OSError):
        while (due := under_way.get())[1]:
            time.sleep(max(due[0] - time.monotonic(), 0.0))
            line.client.sendall(due[1])


def _frame(sock: socket.socket) -> bytes:
    """One request with its length; nothing when the other end has hung up."""
    head = _exactly(sock, 4)
    return head + _exactly(sock, int.from_bytes(head, "big")) if head else b""


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        chunk = sock.recv(min(size - len(parts), _CHUNK))
        if not chunk:
            return b""
        parts += chunk
    return bytes(parts)
