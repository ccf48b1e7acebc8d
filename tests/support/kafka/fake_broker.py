"""A broker with prepared replies, for what a real broker does not do on demand.

It listens on the loopback interface, with one thread per connection. It parses each request and
answers with the next reply. The first reply is a normal ApiVersions response unless
`sends_api_versions` is false. A reply is a function from the received request to the bytes to send;
it may also send nothing or close the connection.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Self
from uuid import UUID

from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from sparkmirror.wire.net.address import Address
from sparkmirror.wire.protocol.error_codes import ErrorCode

API_VERSIONS = 18
API_VERSION_RANGES: Mapping[int, tuple[int, int]] = {
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
class ReceivedRequest:
    """One request as it arrived."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    body: bytes


class CloseConnection(Exception):
    """Raised by a reply that ends the connection."""


Reply = Callable[[ReceivedRequest], bytes]


def no_reply(received: ReceivedRequest) -> bytes:
    """Send nothing and keep the connection."""
    return b""


def close_connection(received: ReceivedRequest) -> bytes:
    """Close the connection instead of answering."""
    raise CloseConnection


def raw_reply(content: bytes) -> Reply:
    """Answer with these bytes, valid or not."""
    return lambda received: content


def truncated_reply(reply: Reply) -> Reply:
    """Send the first half of an answer and close."""

    def half(received: ReceivedRequest) -> bytes:
        whole = reply(received)
        raise CloseConnection(whole[: len(whole) // 2])

    return half


def response_reply(message: Any, *, correlation_off_by: int = 0) -> Reply:
    """Answer with a message of kafka-python, in the version of the request."""

    def answer(received: ReceivedRequest) -> bytes:
        flexible = message.flexible_version_q(received.version) and received.api_key != API_VERSIONS
        tags = b"\x00" if flexible else b""
        head = struct.pack(">i", received.correlation_id + correlation_off_by) + tags
        return length_prefixed(head + message.encode(version=received.version))

    return answer


def length_prefixed(content: bytes) -> bytes:
    """Prepend the length to a response."""
    return struct.pack(">i", len(content)) + content


def api_versions_reply(ranges: Mapping[int, tuple[int, int]] = API_VERSION_RANGES) -> Reply:
    """Answer ApiVersions with these ranges."""
    key = ApiVersionsResponse.ApiVersion
    keys = [
        key(api_key=api_key, min_version=lowest, max_version=highest)
        for api_key, (lowest, highest) in ranges.items()
    ]
    return response_reply(ApiVersionsResponse(error_code=0, api_keys=keys, throttle_time_ms=0))


class FakeBroker:
    """Answers with its replies in turn, over all connections; after the last it sends nothing."""

    def __init__(
        self, replies: Iterable[Reply] = (), *, sends_api_versions: bool = True, port: int = 0
    ) -> None:
        """`port` 0 means any free port."""
        self.requests: list[ReceivedRequest] = []
        """Every request in order, also ApiVersions."""
        self.connections = 0
        self._replies = chain([api_versions_reply()] if sends_api_versions else [], replies)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", port))
        self.address = Address(*self._listener.getsockname())
        self._connections: list[socket.socket] = []
        self._closing = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def api_keys(self) -> list[int]:
        """The API keys of all requests received."""
        return [received.api_key for received in self.requests]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the listener and all connections. May be called again."""
        with self._lock:
            self._closing = True
            for connection in self._connections:
                _close_socket(connection)
        _close_socket(self._listener)
        for thread in list(self._threads):
            thread.join(50)
            assert not thread.is_alive(), "a thread of the fake broker does not end"

    def cut_connections(self) -> None:
        """Close all connections; the broker keeps listening."""
        with self._lock:
            for connection in self._connections:
                _close_socket(connection)

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
                self._connections.append(connection)
                self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while (received := _read_request(connection)) is not None:
                    with self._lock:
                        self.requests.append(received)
                        reply = next(self._replies, no_reply)
                    connection.sendall(reply(received))
            except CloseConnection as last_words:
                connection.sendall(b"".join(last_words.args))
            except OSError:
                return


def answering_broker(
    answers: Mapping[int, Callable[[FakeBroker], Any]],
    *,
    port: int = 0,
    ranges: Mapping[int, tuple[int, int]] = API_VERSION_RANGES,
) -> FakeBroker:
    """A broker that answers every request of a kind in the same way, and others as ApiVersions."""

    def reply(request: ReceivedRequest) -> bytes:
        if request.api_key in answers:
            return response_reply(answers[request.api_key](broker))(request)
        return api_versions_reply(ranges)(request)

    broker = FakeBroker(repeat(reply), sends_api_versions=False, port=port)
    return broker


def leader_metadata(
    broker: FakeBroker,
    code: ErrorCode = ErrorCode.NONE,
    topic_id: UUID | None = None,
    *,
    leader: int = 1,
) -> Any:
    """Metadata of the topic `t` with one partition. The broker has the node id 1."""
    topic = MetadataResponse.MetadataResponseTopic
    led = topic.MetadataResponsePartition(
        partition_index=0, leader_id=leader, leader_epoch=1, replica_nodes=[], isr_nodes=[]
    )
    found = topic(error_code=code.value, name="t", topic_id=topic_id or UUID(int=0))
    found.partitions = [led]
    return MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(
                node_id=1, host=broker.address.host, port=broker.address.port
            )
        ],
        topics=[found],
        cluster_id="c",
        controller_id=1,
    )


def _read_request(connection: socket.socket) -> ReceivedRequest | None:
    size = _read_exactly(connection, 4)
    if size is None:
        return None
    request = _read_exactly(connection, struct.unpack(">i", size)[0])
    return None if request is None else parse_request(request)


def parse_request(request: bytes) -> ReceivedRequest:
    """Parse a request without its length."""
    api_key, version, correlation_id, length = struct.unpack_from(">hhih", request)
    end = struct.calcsize(">hhih") + max(length, 0)
    name = request[struct.calcsize(">hhih") : end].decode()
    return ReceivedRequest(api_key, version, correlation_id, name, request[end:])


def _read_exactly(connection: socket.socket, count: int) -> bytes | None:
    received = bytearray()
    while len(received) < count:
        chunk = connection.recv(count - len(received))
        if not chunk:
            return None
        received += chunk
    return bytes(received)


def _close_socket(sock: socket.socket) -> None:
    """Wake a thread that waits on a socket, and close the socket."""
    with suppress(OSError):  # the other side may have closed it before
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
