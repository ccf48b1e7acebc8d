"""A service that supports only a part of Kafka's protocol: a proxy in front of one real broker.

It stands for services such as Event Hubs. It leaves APIs and versions out of its ApiVersions
response and closes a connection on which one of them is requested; it refuses APIs and codecs with
error codes; it closes a connection on a request that is too large, and after idling. It can lose a
Produce request: the connection ends, and the broker gets the request later, or answers and the
answer is lost.

Each connection has one request at a time. `limits` may change while it runs. With a certificate
clients connect with TLS; the broker checks their login.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kafka.protocol.metadata import ApiVersionsResponse
from kafka.protocol.producer import InitProducerIdResponse, ProduceRequest, ProduceResponse

from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.protocol.error_codes import ErrorCode
from tests.support.kafka.fake_broker import ReceivedRequest, parse_request, response_reply

PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR = 0, 1, 2, 3, 10
API_VERSIONS, INIT_PRODUCER_ID = 18, 22
TRANSACTIONS = frozenset({24, 25, 26, 27, 28, 61, 65, 66})
ACLS = frozenset({29, 30, 31})
CONFIGS = frozenset({32, 33, 44})
GROUPS = frozenset({15, 16, 69})
_ApiVersionsResponse: Any = ApiVersionsResponse
_ProduceRequest: Any = ProduceRequest
EVENT_HUBS_MAX_REQUEST_BYTES = 1_046_528


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """What the service does not do."""

    absent_apis: frozenset[int] = frozenset()
    highest_versions: Mapping[int, int] = field(default_factory=dict)
    """The highest version of some APIs."""
    init_producer_id_code: ErrorCode | None = None
    """With it the service lists InitProducerId and refuses it."""
    refused_codecs: frozenset[int] = frozenset()
    max_request_bytes: int | None = None
    idle_s: float | None = None


EVENT_HUBS = ServiceLimits(
    absent_apis=frozenset({INIT_PRODUCER_ID}) | TRANSACTIONS | ACLS | CONFIGS | GROUPS,
    highest_versions={PRODUCE: 7, FETCH: 6, LIST_OFFSETS: 7, METADATA: 5, FIND_COORDINATOR: 1},
    refused_codecs=frozenset({2, 3, 4}),
    max_request_bytes=EVENT_HUBS_MAX_REQUEST_BYTES,
)
"""More is missing than Event Hubs lacks today: what its tiers have differs. The versions are those
that Event Hubs lists."""


@dataclass(slots=True)
class LimitedService:
    """Listens at once; serves after `forward_to`. Use: `with LimitedService(limits) as service:`"""

    limits: ServiceLimits = EVENT_HUBS
    certificate: Path | None = None
    """The PEM file with its key and its certificate; without one there is no TLS."""
    requests: Counter[int] = field(default_factory=Counter)
    """How many requests of each API arrived."""
    largest_request: int = 0
    """The most bytes of a request, its length included."""
    closed_for_size: int = 0
    closed_for_absent_api: int = 0
    """Also for a version that it does not list."""
    refused_for_codec: int = 0
    closed_for_idling: int = 0
    lost_produce_requests: int = 0
    late_after_s: float = 0.0
    """How much later the broker gets a Produce request that `lose_next_produce` loses."""
    _loses_next: threading.Event = field(default_factory=threading.Event)
    _server: socket.socket = field(init=False)
    _broker: Address | None = None
    _sockets: set[socket.socket] = field(default_factory=set)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> LimitedService:
        self._server = socket.create_server(("127.0.0.1", 0))
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut_connections()
        for thread in self._threads:
            thread.join(timeout=10)

    @property
    def port(self) -> int:
        """The port of the service."""
        port: int = self._server.getsockname()[1]
        return port

    @property
    def address(self) -> str:
        """The address of the service, as host:port."""
        return f"127.0.0.1:{self.port}"

    def forward_to(self, broker: Address) -> None:
        """Accept connections, each with one of its own to this broker."""
        self._broker = broker
        self._start_thread(self._accept)

    def change(self, **limits: Any) -> None:
        """Change some of the limits."""
        self.limits = replace(self.limits, **limits)

    def cut_connections(self) -> None:
        """Close every connection."""
        for end in list(self._sockets):
            _shut_down(end)

    def reset_counts(self) -> None:
        """Count from 0."""
        self.requests.clear()
        self.largest_request = self.lost_produce_requests = 0
        self.closed_for_size = self.closed_for_absent_api = self.closed_for_idling = 0
        self.refused_for_codec = 0

    def lose_next_produce(self, late_after_s: float = 0.0) -> None:
        """Close the connection of the next Produce request; the broker gets it all the same."""
        self.late_after_s = late_after_s
        self._loses_next.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self._start_thread(partial(self._serve, client))

    def _serve(self, accepted: socket.socket) -> None:
        assert self._broker
        with contextlib.suppress(OSError), self._with_tls(accepted) as client:
            self._sockets.add(client)
            try:
                with socket.create_connection(self._broker, timeout=60) as broker:
                    self._answer_requests(client, broker)
                _shut_down(client)
            finally:
                self._sockets.discard(client)

    def _with_tls(self, accepted: socket.socket) -> socket.socket:
        if self.certificate is None:
            return accepted
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        accepted.settimeout(60)
        return context.wrap_socket(accepted, server_side=True)

    def _answer_requests(self, client: socket.socket, broker: socket.socket) -> None:
        while frame := self._next_request(client):
            request = parse_request(frame[4:])
            self.requests[request.api_key] += 1
            if not self._lists(request):
                self.closed_for_absent_api += 1
                return
            if request.api_key == PRODUCE and self._loses_next.is_set():
                self._lose(client, broker, frame)
                return
            client.sendall(self._refusal(request) or self._ask(broker, frame, request))

    def _lists(self, request: ReceivedRequest) -> bool:
        """Whether the ApiVersions response has the version of a request."""
        if request.api_key in self.limits.absent_apis:
            return False
        highest = self.limits.highest_versions.get(request.api_key, request.version)
        return request.version <= highest

    def _next_request(self, client: socket.socket) -> bytes:
        """Return a request with its length; empty if the connection is to be closed."""
        client.settimeout(self.limits.idle_s)
        try:
            frame = _read_frame(client)
        except TimeoutError:
            self.closed_for_idling += 1
            return b""
        limit = self.limits.max_request_bytes
        if limit is not None and len(frame) > limit:
            self.closed_for_size += 1
            return b""
        self.largest_request = max(self.largest_request, len(frame))
        return frame

    def _ask(self, broker: socket.socket, frame: bytes, request: ReceivedRequest) -> bytes:
        broker.sendall(frame)
        answer = _read_frame(broker)
        if not answer:
            raise ConnectionError("the broker has closed the connection")
        return self._trim(answer, request) if request.api_key == API_VERSIONS else answer

    def _trim(self, answer: bytes, request: ReceivedRequest) -> bytes:
        """Leave absent APIs, higher versions and the features out of an ApiVersions response."""
        message = _ApiVersionsResponse.decode(answer[8:], version=request.version)
        if message.error_code:
            return answer
        kept = [key for key in message.api_keys if key.api_key not in self.limits.absent_apis]
        for key in kept:
            highest = self.limits.highest_versions.get(key.api_key, key.max_version)
            key.max_version = min(key.max_version, highest)
        trimmed = ApiVersionsResponse(error_code=0, api_keys=kept, throttle_time_ms=0)
        return response_reply(trimmed)(request)

    def _refusal(self, request: ReceivedRequest) -> bytes:
        """Return the refusal of a request; empty if it is forwarded."""
        if request.api_key == PRODUCE and self.limits.refused_codecs:
            refusal = _codec_refusal(request, self.limits.refused_codecs)
            self.refused_for_codec += bool(refusal)
            return refusal
        code = self.limits.init_producer_id_code
        if request.api_key != INIT_PRODUCER_ID or code is None:
            return b""
        refused = InitProducerIdResponse(
            throttle_time_ms=0, error_code=code.value, producer_id=-1, producer_epoch=-1
        )
        return response_reply(refused)(request)

    def _lose(self, client: socket.socket, broker: socket.socket, frame: bytes) -> None:
        self._loses_next.clear()
        if self.late_after_s:
            _shut_down(client)
            time.sleep(self.late_after_s)
        broker.sendall(frame)
        assert _read_frame(broker)
        self.lost_produce_requests += 1

    def _start_thread(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()


def _codec_refusal(request: ReceivedRequest, refused: frozenset[int]) -> bytes:
    """Refuse a Produce request if one of its batches has a refused codec; else return nothing."""
    tags = 1 if _ProduceRequest.flexible_version_q(request.version) else 0
    message = _ProduceRequest.decode(request.body[tags:], version=request.version)
    codecs = {
        read_header(memoryview(partition.records)).codec_id
        for topic in message.topic_data
        for partition in topic.partition_data
    }
    if not codecs & refused:
        return b""
    made = ProduceResponse.TopicProduceResponse
    topics = []
    for topic in message.topic_data:
        topics.append(made(name=topic.name, topic_id=topic.topic_id))
        topics[-1].partition_responses = [
            made.PartitionProduceResponse(
                index=partition.index,
                error_code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE.value,
                base_offset=-1,
                log_append_time_ms=-1,
                log_start_offset=-1,
                record_errors=[],
                error_message=None,
            )
            for partition in topic.partition_data
        ]
    return response_reply(ProduceResponse(responses=topics, throttle_time_ms=0))(request)


def _read_frame(sock: socket.socket) -> bytes:
    """Return a request or a response with its length; empty if the other side has closed."""
    head = _read_exactly(sock, 4)
    return head + _read_exactly(sock, struct.unpack(">i", head)[0]) if head else b""


def _read_exactly(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        chunk = sock.recv(min(size - len(parts), 1 << 16))
        if not chunk:
            return b""
        parts += chunk
    return bytes(parts)


def _shut_down(sock: socket.socket) -> None:
    """Close both directions at once. A TLS socket does not say goodbye: another thread reads it."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
