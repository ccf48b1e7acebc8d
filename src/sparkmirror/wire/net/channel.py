"""Requests and responses on one socket, without blocking.

Requests are queued and sent as the socket accepts them. Responses are received into frames of a
pool and delivered in order; only the first 8 KB of a frame may be copied. An event loop watches
`fileno()` for reading, for writing while `wants_write`, and calls `close_if_expired` regularly.
`send_and_wait` blocks instead.

Invariants:
    A  responses are matched to requests by order and checked by correlation id
    B  every request ends exactly once: `on_response` gets its response, or `on_error` gets the
       error that closed the channel
    C  after an error nothing is sent or received: a channel is never repaired, only replaced

If a broker throttles, `throttled_until` is set and all deadlines move by the same time. Belongs to
one thread. Knows frames and headers, not the content of requests.
"""

from __future__ import annotations

import logging
import select
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeVar

from sparkmirror.errors import ClusterError, ClusterUnavailable
from sparkmirror.wire.batch.header import BytesLike
from sparkmirror.wire.net.buffer_pool import BufferPool, ResponseFrame
from sparkmirror.wire.net.endpoint_errors import CHECK_BROKER, CHECK_PORT, Endpoint
from sparkmirror.wire.net.transport import TlsSession, Transport
from sparkmirror.wire.protocol.primitive_types import (
    EMPTY_TAG_BUFFER,
    INT32,
    encode_string,
    read_tagged_fields,
)
from sparkmirror.wire.protocol.request import ClientRequest

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_FIRST_RESPONSE_BYTES: Final = 1 << 20
"""On a port of another protocol, the first bytes read as a length are far above this."""
DEFAULT_TIMEOUT_S: Final = 10.0
READ_AHEAD_BYTES: Final = 1 << 13
"""One system call receives up to this much of the next responses: small ones whole."""
RECEIVE_LOW_WATERMARK_BYTES: Final = 1 << 19
"""The selector wakes after so many bytes of a large response: a wake-up costs more than a read."""

_REQUEST_HEADER: Final = struct.Struct(">ihhi")
_MAX_CORRELATION_ID: Final = 0x7FFFFFFF
_HTTP: Final[bytes] = b"HTTP"
_DECODE_ERRORS: Final = (ValueError, IndexError, KeyError, TypeError, struct.error)
"""Exceptions of decoders, our own and kafka-python's, for malformed bytes."""


def ignore_error(error: ClusterError) -> None:
    """For requests whose sender learns of the error in another way."""


@dataclass(slots=True)
class InFlightRequest:
    """A request without a response yet."""

    request: ClientRequest[Any]
    on_response: Callable[[Any], None]
    on_error: Callable[[ClusterError], None]
    deadline: float
    correlation_id: int = -1


class Channel:
    """A connected socket with its requests in flight."""

    def __init__(
        self, endpoint: Endpoint, transport: Transport, pool: BufferPool, client_id: str
    ) -> None:
        self.endpoint = endpoint
        self.throttled_until = 0.0
        self._transport = transport
        self._pool = pool
        self._client_id = encode_string(client_id)
        self._correlation_id = 0
        self._outgoing: deque[BytesLike] = deque()
        self._in_flight: deque[InFlightRequest] = deque()
        self._deferred: deque[InFlightRequest] = deque()
        self._is_deferring = False
        self._ahead = memoryview(bytearray(READ_AHEAD_BYTES))
        self._ahead_from = self._ahead_to = 0
        """The bytes between are received and belong to the next frame."""
        self._is_drained = False
        """Whether the socket had nothing more at the last read, in this call of `on_readable`."""
        self._frame: ResponseFrame | None = None
        self._received = 0
        self._max_response_bytes = MAX_FIRST_RESPONSE_BYTES
        self._has_responded = False
        self._closed = False

    def fileno(self) -> int:
        """For a selector."""
        return self._transport.fileno()

    @property
    def tls_session(self) -> TlsSession | None:
        """The TLS session with the broker; None without TLS."""
        return self._transport.tls_session

    @property
    def wants_write(self) -> bool:
        """Whether a selector should watch for writing too."""
        return bool(self._outgoing) or self._transport.wants_write

    @property
    def in_flight_count(self) -> int:
        """How many requests have no response yet."""
        return len(self._in_flight) + len(self._deferred)

    @property
    def is_closed(self) -> bool:
        """Whether the channel is closed."""
        return self._closed

    def send(
        self,
        request: ClientRequest[T],
        *,
        on_response: Callable[[T], None],
        deadline: float,
        on_error: Callable[[ClusterError], None] = ignore_error,
    ) -> None:
        """Queue a request and send what the socket accepts.

        `deadline` is on the monotonic clock. The request's buffers must not change before
        `on_response` or `on_error` is called. If sending closes the channel, this raises after
        it has called `on_error`.
        """
        if self._closed:
            raise self._closed_error()
        throttled_s = max(self.throttled_until - time.monotonic(), 0.0)
        self._submit(InFlightRequest(request, on_response, on_error, deadline + throttled_s))

    def on_writable(self) -> None:
        """Send queued bytes. Raises ClusterError if that closes the channel."""
        if self._transport.wants_write:
            self.on_readable()
        self._flush()

    def on_readable(self) -> None:
        """Receive and deliver responses. Raises ClusterError if that closes the channel."""
        self._is_drained = False
        while not self._closed:
            frame = self._receive()
            if frame is None:
                break
            self._complete(frame)
        if self._outgoing:
            self._flush()

    @property
    def next_deadline(self) -> float:
        """The earliest deadline of a request in flight; infinity if there is none."""
        return min((pending.deadline for pending in self._pending()), default=float("inf"))

    def has_expired(self, now: float) -> bool:
        """Whether a response is overdue."""
        return self.next_deadline <= now

    def close_if_expired(self, now: float) -> None:
        """Close the channel and raise ClusterTimeout if a response is overdue."""
        for pending in self._pending():
            if pending.deadline <= now:
                what = f"no answer to {pending.request.name} in time"
                has_responded = self._has_responded
                advice = CHECK_BROKER if has_responded else f"{CHECK_BROKER}, and {CHECK_PORT}"
                self._fail(self.endpoint.timed_out(what, advice))

    def send_and_wait(self, request: ClientRequest[T], timeout_s: float = DEFAULT_TIMEOUT_S) -> T:
        """Send a request and wait for its response. Other requests in flight proceed meanwhile."""
        answers: list[T] = []
        self.send(request, on_response=answers.append, deadline=time.monotonic() + timeout_s)
        while not answers:
            try:
                self.poll()
            except ClusterError:
                # A broker that refuses a login responds and then closes: the response counts.
                if not answers:
                    raise
        return answers[0]

    def poll(self) -> None:
        """Wait until the socket is ready, then send and receive. Raises ClusterError on close."""
        if self._closed:
            raise self._closed_error()
        poll = select.poll()
        poll.register(self, select.POLLIN | (select.POLLOUT if self.wants_write else 0))
        poll.poll(max(self.next_deadline - time.monotonic(), 0.0) * 1000)
        if self.wants_write:
            self.on_writable()
        self.on_readable()
        self.close_if_expired(time.monotonic())

    def close(self) -> None:
        """Close the channel. Requests in flight get an error. May be called again."""
        if not self._closed:
            cluster = self.endpoint.cluster
            log.debug("This client closes its connection to %s, %s", cluster, self.endpoint)
        self._close_with(self._closed_error())

    def _pending(self) -> Iterator[InFlightRequest]:
        yield from self._in_flight
        yield from self._deferred

    # -- out -----------------------------------------------------------------------------------

    def _submit(self, pending: InFlightRequest) -> None:
        if self._is_deferring:
            self._deferred.append(pending)
        else:
            self._enqueue(pending)

    def _enqueue(self, pending: InFlightRequest) -> None:
        """Queue a request behind its header, and send what the socket accepts."""
        request = pending.request
        self._correlation_id = (self._correlation_id + 1) & _MAX_CORRELATION_ID
        pending.correlation_id = self._correlation_id
        name = self._client_id + EMPTY_TAG_BUFFER if request.flexible else self._client_id
        size = _REQUEST_HEADER.size - INT32.size + len(name) + sum(map(len, request.body))
        head = _REQUEST_HEADER.pack(size, request.api_key, request.version, pending.correlation_id)
        self._outgoing.append(head + name)
        self._outgoing.extend(part for part in request.body if len(part))
        self._in_flight.append(pending)
        self._flush()

    def _flush(self) -> None:
        try:
            self._transport.send(self._outgoing)
        except OSError as error:
            self._fail(
                self.endpoint.translate_os_error(error, starting=not self._has_responded), error
            )

    # -- in ------------------------------------------------------------------------------------

    def _receive(self) -> ResponseFrame | None:
        """Receive more; return a frame when it is complete."""
        try:
            if self._frame is None and not self._begin_frame():
                return None
            frame = self._frame
            assert frame is not None
            while self._received < frame.size:
                received = self._receive_into(frame.view[self._received :])
                if received == 0:
                    self._transport.set_low_watermark(
                        min(frame.size - self._received, RECEIVE_LOW_WATERMARK_BYTES)
                    )
                    return None
                self._received += received
            self._transport.set_low_watermark(1)
        except OSError as error:
            self._fail(
                self.endpoint.translate_os_error(error, starting=not self._has_responded), error
            )
        self._frame, self._received = None, 0
        return frame

    def _begin_frame(self) -> bool:
        """Allocate the next frame and put in what is received of it; False without its length."""
        while self._ahead_to - self._ahead_from < INT32.size:
            rest = bytes(self._ahead[self._ahead_from : self._ahead_to])
            self._ahead[: len(rest)] = rest
            self._ahead_from, self._ahead_to = 0, len(rest)
            received = self._receive_into(self._ahead[len(rest) :])
            if received == 0:
                return False
            self._ahead_to += received
        self._frame = frame = self._pool.allocate(self._response_size())
        start = self._ahead_from + INT32.size
        self._received = min(frame.size, self._ahead_to - start)
        self._ahead_from = start + self._received
        frame.view[: self._received] = self._ahead[start : self._ahead_from]
        return True

    def _receive_into(self, view: memoryview) -> int:
        """Receive into the view; return 0 if the socket has nothing."""
        if self._is_drained:
            return 0
        received = self._transport.receive_into(view)
        self._is_drained = received < len(view) and self._transport.is_drained_by_short_read
        return received

    def _response_size(self) -> int:
        (size,) = INT32.unpack_from(self._ahead, self._ahead_from)
        if not INT32.size <= size <= self._max_response_bytes:
            is_http = self._ahead[self._ahead_from : self._ahead_from + INT32.size] == _HTTP
            what = "it answers in HTTP" if is_http else f"it announces an answer of {size} bytes"
            self._fail(self._protocol_error(what))
        return int(size)

    def _complete(self, frame: ResponseFrame) -> None:
        """Deliver the response in a frame to the oldest request in flight."""
        try:
            answer = self._decode(frame)
            pending = self._in_flight.popleft()
            self._has_responded = True
            self._apply_throttle(answer)
            pending.on_response(answer)
        finally:
            frame.release()

    def _decode(self, frame: ResponseFrame) -> object:
        if not self._in_flight:
            self._fail(self._protocol_error(f"it sent {frame.size} bytes without a request"))
        expected, request = self._in_flight[0].correlation_id, self._in_flight[0].request
        (correlation_id,) = INT32.unpack_from(frame.view, 0)
        if correlation_id != expected:
            self._fail(
                self._protocol_error(f"it answered request {correlation_id}, not {expected}")
            )
        at = INT32.size
        try:
            if request.flexible_response_header:
                _, at = read_tagged_fields(frame.view, at)
            answer: object = request.decode(frame, at)
        except _DECODE_ERRORS as error:
            what = f"its answer to {request.name} version {request.version} cannot be read: {error}"
            self._fail(self._protocol_error(what), error)
        return answer

    def _apply_throttle(self, answer: object) -> None:
        throttled_s = (getattr(answer, "throttle_time_ms", 0) or 0) / 1000
        if throttled_s > 0:
            self.throttled_until = time.monotonic() + throttled_s
            for pending in self._pending():
                pending.deadline += throttled_s

    # -- closing -------------------------------------------------------------------------------

    def _closed_error(self) -> ClusterUnavailable:
        return self.endpoint.unavailable("the connection is closed", "open another one")

    def _protocol_error(self, what: str) -> ClusterUnavailable:
        return self.endpoint.unavailable(what, CHECK_BROKER if self._has_responded else CHECK_PORT)

    def _fail(self, error: ClusterError, cause: BaseException | None = None) -> NoReturn:
        if not self._closed:
            log.debug("The connection ends with an error: %s", error)
        self._close_with(error)
        raise error from cause

    def _close_with(self, error: ClusterError) -> None:
        if self._closed:
            return
        self._closed = True
        self._transport.close()
        if self._frame is not None:
            self._frame.release()
            self._frame = None
        pending_requests = list(self._pending())
        for queue in (self._outgoing, self._in_flight, self._deferred):
            queue.clear()
        for pending in pending_requests:
            pending.on_error(error)
