"""A broker that says whatever a test wants, for what a real one cannot be made to do on demand.

It listens on the loopback interface, one thread for each connection. Requests are really received
and taken apart; each is answered by the next of the replies it was given, after a proper greeting
(ApiVersions) if it greets at all. A reply is a function from the request heard to the bytes to
say; it may also say nothing, or hang up.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import Any, Self

from kafka.protocol.metadata import ApiVersionsResponse

from sparkmirror.wire.place import Address

API_VERSIONS = 18
RANGES: Mapping[int, tuple[int, int]] = {
    0: (3, 13),
    1: (4, 18),
    2: (1, 10),
    3: (0, 13),
    10: (0, 6),
    17: (0, 1),
    18: (0, 4),
    22: (0, 5),
    36: (0, 2),
}


@dataclass(frozen=True, slots=True)
class Heard:
    """One request as it arrived."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    body: bytes


class HangUp(Exception):
    """Raised by a reply that ends the connection."""


Reply = Callable[[Heard], bytes]


def silence(heard: Heard) -> bytes:
    """Say nothing and keep the connection."""
    return b""


def hang_up(heard: Heard) -> bytes:
    """Close the connection instead of answering."""
    raise HangUp


def saying(words: bytes) -> Reply:
    """Answer with bytes as they are, sense or nonsense."""
    return lambda heard: words


def saying_half(reply: Reply) -> Reply:
    """Say the first half of an answer and then hang up."""

    def half(heard: Heard) -> bytes:
        whole = reply(heard)
        raise HangUp(whole[: len(whole) // 2])

    return half


def answering(message: Any, *, correlation_off_by: int = 0) -> Reply:
    """Answer with a message of the library, in the version that was asked for."""

    def answer(heard: Heard) -> bytes:
        flexible = message.flexible_version_q(heard.version) and heard.api_key != API_VERSIONS
        tags = b"\x00" if flexible else b""
        head = struct.pack(">i", heard.correlation_id + correlation_off_by) + tags
        return frame(head + message.encode(version=heard.version))

    return answer


def frame(content: bytes) -> bytes:
    """Put the length before what an answer holds."""
    return struct.pack(">i", len(content)) + content


def greeting(ranges: Mapping[int, tuple[int, int]] = RANGES) -> Reply:
    """Answer ApiVersions with what the broker takes."""
    key = ApiVersionsResponse.ApiVersion
    keys = [
        key(api_key=api_key, min_version=lowest, max_version=highest)
        for api_key, (lowest, highest) in ranges.items()
    ]
    return answering(ApiVersionsResponse(error_code=0, api_keys=keys, throttle_time_ms=0))


class FakeBroker:
    """Answers with its replies in turn, over all connections; when they run out it is silent."""

    def __init__(self, replies: Iterable[Reply] = (), *, greets: bool = True) -> None:
        self.heard: list[Heard] = []
        """Every request, greetings too, in order."""
        self.connections = 0
        self._replies = chain([greeting()] if greets else [], replies)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._listener.getsockname())
        self._open: list[socket.socket] = []
        self._closing = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def api_keys(self) -> list[int]:
        """Which requests it heard."""
        return [heard.api_key for heard in self.heard]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the door and hang up on everybody. May be called again."""
        with self._lock:
            self._closing = True
            for connection in self._open:
                _shut(connection)
        _shut(self._listener)
        for thread in list(self._threads):
            thread.join(50)
            assert not thread.is_alive(), "a thread of the fake broker does not end"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._lock:
                if self._closing:
                    connection.close()
                    return
                self.connections += 1
                self._open.append(connection)
                self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while (heard := _hear(connection)) is not None:
                    with self._lock:
                        self.heard.append(heard)
                        reply = next(self._replies, silence)
                    connection.sendall(reply(heard))
            except HangUp as last_words:
                connection.sendall(b"".join(last_words.args))
            except OSError:
                return


def _hear(connection: socket.socket) -> Heard | None:
    size = _exactly(connection, 4)
    if size is None:
        return None
    request = _exactly(connection, struct.unpack(">i", size)[0])
    if request is None:
        return None
    api_key, version, correlation_id, length = struct.unpack_from(">hhih", request)
    end = struct.calcsize(">hhih") + max(length, 0)
    name = request[struct.calcsize(">hhih") : end].decode()
    return Heard(api_key, version, correlation_id, name, request[end:])


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    received = bytearray()
    while len(received) < count:
        chunk = connection.recv(count - len(received))
        if not chunk:
            return None
        received += chunk
    return bytes(received)


def _shut(sock: socket.socket) -> None:
    """Wake whoever waits on a socket, and close it."""
    with suppress(OSError):  # the other side may have been faster
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
