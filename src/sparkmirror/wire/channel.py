"""Requests out, answers in, on one socket, without blocking.

Requests are queued and sent as the socket takes them; answers are received into frames of a pool,
without a copy, and handed over in order. A loop watches `fileno()` for reading always and for
writing while `wants_write`, and asks `expire` now and then. `wait_for` is the same with waiting.

Invariants:
    A  answers are matched to requests by order and checked by correlation id
    B  every request is settled exactly once: `then` with its answer, or `lost` with the error that
       ended the channel
    C  after an error nothing is sent or received any more: a channel is never mended, only replaced

A broker that throttles mutes the channel: `muted_until` says so, and deadlines move by as much.
Belongs to one thread. Knows frames and headers, and nothing of what is asked.
"""

from __future__ import annotations

import select
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from sparkmirror.errors import ClusterError, ClusterUnavailable
from sparkmirror.wire.buffers import Frame, Pool
from sparkmirror.wire.fields import INT32, NO_TAGS, read_tags, string
from sparkmirror.wire.header import Data
from sparkmirror.wire.place import BROKER_WELL, RIGHT_PORT, Place
from sparkmirror.wire.request import Request
from sparkmirror.wire.transport import Transport

T = TypeVar("T")

LARGEST_FRAME_AT_START = 1 << 20
"""What another protocol answers on the wrong port, read as a length, is far above this."""
WAIT_S = 10.0
AWAITED_BYTES = 1 << 19
"""Of a large answer, so much is waited for at a time: being woken costs more than receiving."""

_REQUEST_HEAD = struct.Struct(">ihhi")
_LARGEST_CORRELATION_ID = 0x7FFFFFFF
_UNREADABLE = (ValueError, IndexError, KeyError, TypeError, struct.error)
"""What decoding bytes that make no sense raises, in our codecs and in the library's."""


def forget(error: ClusterError) -> None:
    """Do nothing about a lost request: whoever sent it hears of the error in another way."""


@dataclass(slots=True)
class Pending:
    """A request that is not settled yet."""

    request: Request[Any]
    then: Callable[[Any], None]
    lost: Callable[[ClusterError], None]
    deadline: float
    correlation_id: int = -1


class Channel:
    """A connected socket with the requests that are on their way."""

    def __init__(self, place: Place, transport: Transport, pool: Pool, client_id: str) -> None:
        self.place = place
        self.muted_until = 0.0
        self._transport = transport
        self._pool = pool
        self._client_id = string(client_id)
        self._correlation_id = 0
        self._out: deque[Data] = deque()
        self._in_flight: deque[Pending] = deque()
        self._held: deque[Pending] = deque()
        self._holding = False
        self._head = memoryview(bytearray(INT32.size))
        self._frame: Frame | None = None
        self._received = 0
        self._largest_frame = LARGEST_FRAME_AT_START
        self._answered = False
        self._closed = False

    def fileno(self) -> int:
        """For a selector."""
        return self._transport.fileno()

    @property
    def wants_write(self) -> bool:
        """Whether a selector should watch for writing too."""
        return bool(self._out) or self._transport.wants_write

    @property
    def in_flight(self) -> int:
        """How many requests are not settled."""
        return len(self._in_flight) + len(self._held)

    @property
    def is_closed(self) -> bool:
        """Whether this channel is over."""
        return self._closed

    def send(
        self,
        request: Request[T],
        *,
        then: Callable[[T], None],
        deadline: float,
        lost: Callable[[ClusterError], None] = forget,
    ) -> None:
        """Queue a request and send what the socket takes; it is settled by `then` or `lost`.

        `deadline` is on the monotonic clock. The request's buffers must not change before it is
        settled. If sending ends the channel, `lost` has been told when this raises.
        """
        if self._closed:
            raise self._over()
        muted_s = max(self.muted_until - time.monotonic(), 0.0)
        self._submit(Pending(request, then, lost, deadline + muted_s))

    def on_writable(self) -> None:
        """Send on; raises one of our errors if the channel is lost."""
        if self._transport.wants_write:
            self.on_readable()
        self._flush()

    def on_readable(self) -> None:
        """Receive what is there and settle what is answered; raises if the channel is lost."""
        while not self._closed:
            frame = self._receive()
            if frame is None:
                break
            self._settle(frame)
        if self._out:
            self._flush()

    @property
    def next_deadline(self) -> float:
        """When the first answer will be overdue; never, if none is awaited."""
        return min((pending.deadline for pending in self._unsettled()), default=float("inf"))

    def expired(self, now: float) -> bool:
        """Tell whether an answer is overdue."""
        return self.next_deadline <= now

    def expire(self, now: float) -> None:
        """End the channel with ClusterTimeout if an answer is overdue."""
        for pending in self._unsettled():
            if pending.deadline <= now:
                self._fail(self.place.late(f"no answer to {pending.request.name} in time"))

    def wait_for(self, request: Request[T], timeout_s: float = WAIT_S) -> T:
        """Send a request and wait for its answer; whatever else is in flight goes on meanwhile."""
        answers: list[T] = []
        self.send(request, then=answers.append, deadline=time.monotonic() + timeout_s)
        while not answers:
            try:
                self.wait()
            except ClusterError:
                # A broker that refuses a login says so and hangs up: what it said counts.
                if not answers:
                    raise
        return answers[0]

    def wait(self) -> None:
        """Wait until something can be done, and do it; raises if that is to end the channel."""
        if self._closed:
            raise self._over()
        poll = select.poll()
        poll.register(self, select.POLLIN | (select.POLLOUT if self.wants_write else 0))
        poll.poll(max(self.next_deadline - time.monotonic(), 0.0) * 1000)
        if self.wants_write:
            self.on_writable()
        self.on_readable()
        self.expire(time.monotonic())

    def close(self) -> None:
        """End the channel. What is not settled is lost. May be called again."""
        self._end(self._over())

    def _unsettled(self) -> Iterator[Pending]:
        yield from self._in_flight
        yield from self._held

    # -- out -----------------------------------------------------------------------------------

    def _submit(self, pending: Pending) -> None:
        if self._holding:
            self._held.append(pending)
        else:
            self._post(pending)

    def _post(self, pending: Pending) -> None:
        """Give a request its header and its place in the order, and send what goes."""
        request = pending.request
        self._correlation_id = (self._correlation_id + 1) & _LARGEST_CORRELATION_ID
        pending.correlation_id = self._correlation_id
        name = self._client_id + NO_TAGS if request.flexible else self._client_id
        size = _REQUEST_HEAD.size - INT32.size + len(name) + sum(map(len, request.body))
        head = _REQUEST_HEAD.pack(size, request.api_key, request.version, pending.correlation_id)
        self._out.append(head + name)
        self._out.extend(part for part in request.body if len(part))
        self._in_flight.append(pending)
        self._flush()

    def _flush(self) -> None:
        try:
            self._transport.send(self._out)
        except OSError as error:
            self._fail(self.place.translate(error, starting=not self._answered), error)

    # -- in ------------------------------------------------------------------------------------

    def _receive(self) -> Frame | None:
        """Go on receiving; return a frame when it is complete."""
        try:
            if self._frame is None:
                if not self._fill(self._head):
                    return None
                self._frame, self._received = self._pool.lend(self._frame_size()), 0
            if not self._fill(self._frame.view):
                self._transport.await_bytes(
                    min(len(self._frame.view) - self._received, AWAITED_BYTES)
                )
                return None
            self._transport.await_bytes(1)
        except OSError as error:
            self._fail(self.place.translate(error, starting=not self._answered), error)
        frame, self._frame, self._received = self._frame, None, 0
        return frame

    def _fill(self, view: memoryview) -> bool:
        while self._received < len(view):
            received = self._transport.receive_into(view[self._received :])
            if received == 0:
                return False
            self._received += received
        return True

    def _frame_size(self) -> int:
        (size,) = INT32.unpack(self._head)
        if not INT32.size <= size <= self._largest_frame:
            self._fail(self._nonsense(f"it announces an answer of {size} bytes"))
        return int(size)

    def _settle(self, frame: Frame) -> None:
        """Hand the answer in a frame to whoever asked first."""
        try:
            answer = self._decode(frame)
            pending = self._in_flight.popleft()
            self._answered = True
            self._note_throttling(answer)
            pending.then(answer)
        finally:
            frame.release()

    def _decode(self, frame: Frame) -> object:
        if not self._in_flight:
            self._fail(self._nonsense(f"it sent {frame.size} bytes that nobody asked for"))
        expected, request = self._in_flight[0].correlation_id, self._in_flight[0].request
        (correlation_id,) = INT32.unpack_from(frame.view, 0)
        if correlation_id != expected:
            self._fail(self._nonsense(f"it answered request {correlation_id}, not {expected}"))
        at = INT32.size
        try:
            if request.flexible_answer:
                _, at = read_tags(frame.view, at)
            answer: object = request.decode(frame, at)
        except _UNREADABLE as error:
            said = f"its answer to {request.name} version {request.version} cannot be read: {error}"
            self._fail(self._nonsense(said), error)
        return answer

    def _note_throttling(self, answer: object) -> None:
        throttled_s = (getattr(answer, "throttle_time_ms", 0) or 0) / 1000
        if throttled_s > 0:
            self.muted_until = time.monotonic() + throttled_s
            for pending in self._unsettled():
                pending.deadline += throttled_s

    # -- the end -------------------------------------------------------------------------------

    def _over(self) -> ClusterUnavailable:
        return self.place.unavailable("the connection is closed", "open another one")

    def _nonsense(self, what: str) -> ClusterUnavailable:
        return self.place.unavailable(what, BROKER_WELL if self._answered else RIGHT_PORT)

    def _fail(self, error: ClusterError, cause: BaseException | None = None) -> NoReturn:
        self._end(error)
        raise error from cause

    def _end(self, error: ClusterError) -> None:
        if self._closed:
            return
        self._closed = True
        self._transport.close()
        if self._frame is not None:
            self._frame.release()
            self._frame = None
        unsettled = list(self._unsettled())
        for queue in (self._out, self._in_flight, self._held):
            queue.clear()
        for pending in unsettled:
            pending.lost(error)
