"""The target side of a task: batches out, acknowledgements in, everything else settled by its kind.

One connection per target broker, several requests in flight on it, one batch of a partition in
each, as many partitions as there are. An acknowledgement must name the offset the batch was sealed
for; anything else means that somebody else writes to the partition, and ends the lease.

What was sent and not acknowledged is either sent again unchanged, which the broker recognises by
its sequence (`repeating` asks it first whether it does), or, where the broker may have forgotten
the producer (old data), left for the driver to find out. In a transaction the data is never too
old, because a broker remembers the producer of an open transaction; what cannot be settled by
sending again fails the transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.copy.task.transaction import Transaction
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.produce import (
    OutgoingBatch,
    PartitionProduceResponse,
    ProduceResponseData,
    produce_request,
    produce_version,
    supports_topic_ids,
)
from sparkmirror.wire.protocol.topic_key import TopicKey

MAX_REQUEST_BYTES = 4 << 20
MIN_REQUESTS_IN_FLIGHT = 2
"""Requests under way that keep a broker busy on a short way."""
MIN_EXTRA_REQUEST_BYTES = 1 << 18
LONG_ROUND_TRIP_S = 0.01
PRODUCE_TIMEOUT_MS = 10_000
REQUEST_TIMEOUT_S = 15.0
MAX_RESEND_AGE_MS = 12 * 3600 * 1000
"""A broker forgets the producer of data older than a day; half of that is safely remembered."""

NOT_APPENDED = frozenset(
    {
        *(ErrorAction.BACK_OFF, ErrorAction.SEQUENCE, ErrorAction.CONTENT, ErrorAction.FENCED),
        *(ErrorAction.TOPIC_GONE, ErrorAction.NOT_AUTHORIZED, ErrorAction.COORDINATOR),
    }
)
"""What a broker answers before it has appended anything. Not so a leader that is one no longer: it
may have appended, and its successor may have that."""

SentBatches = dict[tuple[TopicKey, int], tuple[LeasedPartition, PendingBatch]]


@dataclass(slots=True)
class Sender:
    """Keeps every target broker busy with what is ready."""

    cluster: ClusterConnections
    max_in_flight: int
    on_acknowledged: Callable[[LeasedPartition, PendingBatch, list[OffsetRun]], None]
    now_ms: Callable[[], int]
    transaction: Transaction | None = None
    _ready: dict[LeasedPartition, None] = field(default_factory=dict)
    _round_trips: dict[int, float] = field(default_factory=dict)
    """The quickest answer of each broker so far."""

    def mark_ready(self, course: LeasedPartition) -> None:
        """Note that a partition may have something to send."""
        self._ready[course] = None

    def remove(self, course: LeasedPartition) -> None:
        """A partition is given back."""
        self._ready.pop(course, None)

    def poll(self, now: float) -> None:
        """Send what can be sent."""
        by_node: dict[int, list[LeasedPartition]] = {}
        for course in list(self._ready):
            if not course.queue.ready:
                del self._ready[course]
            elif now >= course.send_backoff.until and not (
                course.needs_sequence_check or course.needs_resend_check
            ):
                node = self.cluster.leader_node(course.queue.lease.target)
                if node is not None:
                    by_node.setdefault(node, []).append(course)
        for node, courses in by_node.items():
            connection = self.cluster.connection(node)
            if connection and now >= connection.throttled_until:
                while self._can_send(node, connection, courses) and self._send(
                    node, connection, courses, now
                ):
                    pass

    def _can_send(
        self, node: int, connection: BrokerConnection, courses: list[LeasedPartition]
    ) -> bool:
        """Whether another request pays: a broker works on one at a time, so few large ones do."""
        under_way = connection.in_flight_count
        if under_way < MIN_REQUESTS_IN_FLIGHT:
            return True
        if under_way >= self.max_in_flight:
            return False
        far = self._round_trips.get(node, 0.0) > LONG_ROUND_TRIP_S
        return (
            far
            or sum(c.queue.ready[0].size for c in courses if c.queue.ready)
            >= MIN_EXTRA_REQUEST_BYTES
        )

    def _send(
        self, node: int, connection: BrokerConnection, courses: list[LeasedPartition], now: float
    ) -> bool:
        """Send one request with a batch of each partition that has one; say whether any had."""
        if connection.is_closed:
            return False
        parcels: list[tuple[LeasedPartition, PendingBatch]] = []
        size = 0
        for course in courses:
            if size >= MAX_REQUEST_BYTES:
                break
            parcel = course.queue.next_to_send() if course.can_send else None
            if parcel:
                parcels.append((course, parcel))
                size += parcel.size
        if not parcels:
            return False
        within = self.transaction
        joins = within is None or within.is_transaction_v2
        by_id = (joins and supports_topic_ids(connection.api_versions)) and all(
            course.queue.lease.target_topic_id for course, _ in parcels
        )
        sent: SentBatches = {}
        batches = []
        for course, parcel in parcels:
            lease = course.queue.lease
            topic = self.cluster.topic_key(lease.target.topic, lease.target_topic_id, by_id=by_id)
            sent[topic, lease.target.partition] = course, parcel
            batches.append(OutgoingBatch(topic, lease.target.partition, parcel.buffers))
        request = produce_request(
            produce_version(connection.api_versions, by_id=by_id, joins=joins),
            batches,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            transactional_id=within.transactional_producer.transactional_id if within else None,
        )
        self.cluster.loop.run_guarded(
            connection,
            lambda: connection.send(
                request,
                then=lambda answer: self._on_response(node, now, sent, answer),
                lost=lambda error: self._on_request_lost(sent, error),
                deadline=now + REQUEST_TIMEOUT_S,
            ),
        )
        return True

    # -- what became of it ---------------------------------------------------------------------

    def _on_response(
        self, node: int, asked_at: float, sent: SentBatches, answer: ProduceResponseData
    ) -> None:
        now = time.monotonic()
        self._round_trips[node] = min(self._round_trips.get(node, now), now - asked_at)
        for key, (course, parcel) in sent.items():
            acknowledgement = answer.partition_responses.get(key)
            if acknowledgement is None:
                course.end_now(
                    LeaseEndReason.AMBIGUOUS, "the target left a batch out of its answer"
                )
            elif acknowledgement.error_code == 0:
                self._on_appended(course, parcel, acknowledgement.base_offset)
            else:
                target = course.queue.lease.target
                self.cluster.update_leader(
                    target, acknowledgement.current_leader, answer.node_endpoints
                )
                self._on_error(course, parcel, acknowledgement, now)
            course.queue.on_request_done()
            self.mark_ready(course)

    def _on_appended(self, course: LeasedPartition, parcel: PendingBatch, base_offset: int) -> None:
        if not course.queue.is_oldest_in_flight(parcel):
            if parcel in course.queue.in_flight:
                course.end_now(
                    LeaseEndReason.AMBIGUOUS,
                    f"the target took the batch for offset {parcel.expected} before an earlier one",
                )
            return
        if not course.queue.accept_base_offset(parcel, base_offset):
            course.end_now(
                LeaseEndReason.AMBIGUOUS,
                f"a batch for target offset {parcel.expected} was appended at {base_offset}:"
                " somebody else writes to the remote topic, or it was recreated",
            )
            return
        course.send_backoff.clear()
        course.max_timestamp_ms = max(course.max_timestamp_ms, parcel.max_timestamp_ms)
        self.on_acknowledged(course, parcel, course.queue.acknowledge(parcel))

    def _on_error(
        self,
        course: LeasedPartition,
        parcel: PendingBatch,
        said: PartitionProduceResponse,
        now: float,
    ) -> None:
        code = ErrorCode(said.error_code)
        if code.action in NOT_APPENDED:
            course.queue.mark_not_appended(parcel)
        if self.transaction and _fails_transaction(course, parcel, code):
            how = (
                LeaseEndReason.FENCED
                if code.action is ErrorAction.FENCED
                else LeaseEndReason.AMBIGUOUS
            )
            self.transaction.fail(how, f"{course.key}: the target ends the transaction: {code}")
        else:
            self._handle_error(course, parcel, said, now)

    def _handle_error(
        self,
        course: LeasedPartition,
        parcel: PendingBatch,
        said: PartitionProduceResponse,
        now: float,
    ) -> None:
        code = ErrorCode(said.error_code)
        target = course.queue.lease.target
        match code.action:
            case ErrorAction.REFRESH:
                course.send_backoff.start(f"target: {code}", now)
                self._resend_when_safe(course)
                self.cluster.request_metadata_update(target.topic)
            case ErrorAction.COORDINATOR | ErrorAction.BACK_OFF:
                course.send_backoff.start(f"target: {code}", now)
                course.queue.resend_in_flight()
                self.cluster.request_metadata_update(target.topic)
            case ErrorAction.AMBIGUOUS:
                self._resend(course, f"target: {code}", now)
            case ErrorAction.SEQUENCE if course.queue.is_oldest_in_flight(parcel):
                course.needs_sequence_check = True
            case ErrorAction.SEQUENCE if not course.needs_sequence_check:
                course.queue.resend_in_flight()
            case ErrorAction.SEQUENCE:
                pass
            case ErrorAction.FENCED:
                course.end_now(
                    LeaseEndReason.FENCED, f"another owner has taken over {target}: {code}"
                )
            case ErrorAction.TOPIC_GONE:
                course.end_now(
                    LeaseEndReason.TARGET_GONE, f"the remote topic {target.topic} is gone: {code}"
                )
            case ErrorAction.NOT_AUTHORIZED:
                course.end_now(
                    LeaseEndReason.NOT_AUTHORIZED,
                    f"the target refuses to let {target.topic} be written: {code};"
                    " grant Write on the topic",
                )
            case _:
                course.end_now(LeaseEndReason.REFUSED, _rejection_text(parcel, said, code))

    def _on_request_lost(self, sent: SentBatches, error: ClusterError) -> None:
        now = time.monotonic()
        for course, _ in sent.values():
            self._resend(course, f"target: {error}", now)
            course.queue.on_request_done()
            self.mark_ready(course)

    def _resend(self, course: LeasedPartition, why: str, now: float) -> None:
        """Repeat what nobody answered for, unless the broker may not recognise it."""
        oldest = (
            min(p.max_timestamp_ms for p in course.queue.in_flight) if course.queue.in_flight else 0
        )
        is_old = course.queue.in_flight and oldest < self.now_ms() - MAX_RESEND_AGE_MS
        if is_old and self.transaction is None:
            course.end_now(
                LeaseEndReason.AMBIGUOUS,
                f"{why}; the data is too old to be sent twice without looking",
            )
        else:
            course.send_backoff.start(why, now)
            self._resend_when_safe(course)
        self.cluster.request_metadata_update(course.queue.lease.target.topic)

    def _resend_when_safe(self, course: LeasedPartition) -> None:
        """Send again as soon as it is known that nothing can come twice.

        In a transaction it is: the broker remembers its producer until the end.
        """
        if course.queue.in_flight and self.transaction is None:
            course.needs_resend_check = True
        course.queue.resend_in_flight()


def _fails_transaction(course: LeasedPartition, parcel: PendingBatch, code: ErrorCode) -> bool:
    """Whether a transaction cannot go on after this."""
    if code.action is ErrorAction.SEQUENCE:
        return course.can_send and course.queue.is_oldest_in_flight(parcel)
    return code.action in (ErrorAction.FENCED, ErrorAction.TRANSACTION)


def _rejection_text(parcel: PendingBatch, said: PartitionProduceResponse, code: ErrorCode) -> str:
    detail = said.error_message or "; ".join(
        f"record {record.batch_index}: {record.message}" for record in said.record_errors[:3]
    )
    first, _ = parcel.spans[0]
    last, length = parcel.spans[-1]
    return (
        f"the target refuses source offsets {first} to {last + length - 1}: {code}"
        f"{': ' + detail if detail else ''}"
    )
