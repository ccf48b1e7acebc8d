"""The source side of a task: one fetch at a time on each source broker, while there is room.

A partition is asked for unless it waits, leaves, or has enough queued already; all partitions
together stay within the memory budget. A fetch waits at the broker for news only if every partition
of that broker takes part: otherwise it would keep the others waiting. How much one fetch may bring
follows from the length of the way to the source (`appetite`); what it must name, from what has
moved since the last one (`visit`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.fetch_plan import FetchPlan
from sparkmirror.copy.task.fetch_size import MIN_FETCH_BYTES, FetchSizeEstimator
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.throttle import Throttle
from sparkmirror.errors import ClusterError
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.fetch import (
    FetchedPartition,
    FetchParams,
    FetchPosition,
    FetchResponseData,
    TopicKeyPartition,
    fetch_request,
    fetch_version,
    supports_topic_ids,
)
from sparkmirror.wire.protocol.fetch_session import SESSION_ERRORS
from sparkmirror.wire.protocol.topic_key import TopicKey

PARTITION_BYTES = 1 << 20
MAX_BUFFERED_RESPONSES = 4
"""How many answers may lie in memory before the next fetch waits for acknowledgements."""
LONG_POLL_MS = 500
SHORT_POLL_MS = 5
REQUEST_TIMEOUT_S = 10.0
REFRESH_INTERVAL_S = 0.5
"""How often to look where every partition is to be read, if nothing tells that this has changed."""


@dataclass(slots=True)
class Fetcher:
    """Keeps every source broker busy, within the budget."""

    cluster: ClusterConnections
    read_committed: bool
    rack: str
    on_fetched: Callable[[LeasedPartition, int], None]
    """Told when a partition has so many new bytes to send."""
    _fetch_sizes: dict[int, FetchSizeEstimator] = field(default_factory=dict)
    _plans: dict[int, FetchPlan] = field(default_factory=dict)
    _by_broker: dict[int, list[LeasedPartition]] = field(default_factory=dict)
    """Which broker is to be asked for which partitions."""
    _refresh_at: float = 0.0

    def invalidate_brokers(self) -> None:
        """There are other partitions than before, or they are to be read elsewhere."""
        self._refresh_at = 0.0

    def poll(self, courses: Iterable[LeasedPartition], now: float, throttle: Throttle) -> None:
        """Ask every idle source broker for what its partitions have room for."""
        if not throttle.allows(now) or not self.cluster.budget.available:
            return
        if now >= self._refresh_at:
            self._assign_to_brokers(courses)
            self._refresh_at = now + REFRESH_INTERVAL_S
        for node, there in self._by_broker.items():
            connection = self.cluster.connection(node)
            if connection and not connection.in_flight_count and now >= connection.throttled_until:
                self._fetch(node, connection, there, now, throttle.max_fetch_bytes)

    def _assign_to_brokers(self, courses: Iterable[LeasedPartition]) -> None:
        """Find out where every partition is to be read."""
        self._by_broker = {}
        for course in courses:
            if course.preferred_read_replica is not None and self.cluster.is_unreachable(
                course.preferred_read_replica
            ):
                course.preferred_read_replica = None
            node = course.preferred_read_replica
            if node is None:
                node = self.cluster.leader_node(course.queue.lease.source)
            if node is not None:
                self._by_broker.setdefault(node, []).append(course)
        for visit in self._plans.values():
            visit.is_current = False

    def _fetch(
        self,
        node: int,
        connection: BrokerConnection,
        there: list[LeasedPartition],
        now: float,
        most: int | None,
    ) -> None:
        appetite = self._fetch_sizes.get(node)
        if appetite is None:
            appetite = self._fetch_sizes[node] = FetchSizeEstimator()
        if self.cluster.budget.used >= MAX_BUFFERED_RESPONSES * appetite.max_bytes:
            return
        room = MAX_BUFFERED_RESPONSES * appetite.max_bytes // 2
        size = max(min(appetite.max_bytes, self.cluster.budget.available), MIN_FETCH_BYTES // 4)
        size = min(size, most or size)

        def is_hungry(course: LeasedPartition) -> bool:
            has_room = course.queue.queued_bytes < room
            return has_room and now >= course.fetch_backoff.until and not course.is_ending

        visit = self._plans.get(node)
        if visit and visit.can_continue(
            connection, _partition_max_bytes(size, len(visit.requested)), is_hungry
        ):
            self._send_fetch(visit, visit.next_incremental(), (), size, appetite, now)
            return
        staying = [course for course in there if not course.is_ending]
        hungry = [course for course in staying if is_hungry(course)]
        if not hungry:
            return
        first = appetite.next_rotation() % len(hungry)
        hungry = hungry[first:] + hungry[:first]
        visit = self._plan_for(node, connection, hungry)
        visit.is_complete = len(hungry) == len(staying)
        key_of = partial(self._topic_key, by_id=visit.by_id)
        positions, forgotten = visit.next_full(
            hungry, _partition_max_bytes(size, len(hungry)), key_of
        )
        self._send_fetch(visit, positions, forgotten, size, appetite, now)

    def _plan_for(
        self, node: int, connection: BrokerConnection, courses: list[LeasedPartition]
    ) -> FetchPlan:
        """The visit to a broker; another connection, or other names of topics, begin anew."""
        by_id = supports_topic_ids(connection.api_versions) and all(
            course.queue.lease.source_topic_id for course in courses
        )
        visit = self._plans.get(node)
        if visit is None or visit.connection is not connection or visit.by_id is not by_id:
            visit = self._plans[node] = FetchPlan(connection, by_id)
        return visit

    def _topic_key(self, course: LeasedPartition, *, by_id: bool) -> TopicKey:
        lease = course.queue.lease
        return self.cluster.topic_key(lease.source.topic, lease.source_topic_id, by_id=by_id)

    def _send_fetch(
        self,
        visit: FetchPlan,
        positions: list[FetchPosition],
        forgotten: tuple[TopicKeyPartition, ...],
        size: int,
        appetite: FetchSizeEstimator,
        now: float,
    ) -> None:
        connection, session = visit.connection, visit.session
        limits = FetchParams(
            max_wait_ms=LONG_POLL_MS if visit.is_complete else SHORT_POLL_MS,
            max_bytes=size,
            read_committed=self.read_committed,
            rack=self.rack,
            session=session.id_and_epoch,
            forgotten=forgotten,
        )
        version = fetch_version(connection.api_versions, by_id=visit.by_id)
        request = fetch_request(version, limits, positions)

        def heard(answer: FetchResponseData) -> None:
            heard_at = time.monotonic()
            appetite.update(answer.frame.size, heard_at - now)
            if answer.error_code in SESSION_ERRORS:
                session.reset()  # named in full, the same is asked again at once
                return
            session.on_response(answer.session_id)
            self._handle_response(visit, answer, heard_at)

        def lost(error: ClusterError) -> None:
            session.reset()
            for course, _ in visit.requested.values():
                course.fetch_backoff.start(f"source: {error}", time.monotonic())
                course.preferred_read_replica = None
            self.invalidate_brokers()

        self.cluster.loop.run_guarded(
            connection,
            lambda: connection.send(
                request, then=heard, lost=lost, deadline=now + REQUEST_TIMEOUT_S
            ),
        )

    def _handle_response(self, visit: FetchPlan, answer: FetchResponseData, now: float) -> None:
        if answer.error_code:
            for course, _ in visit.requested.values():
                self._handle_error(course, ErrorCode(answer.error_code), now)
            return
        for fetched in answer.partitions:
            place = fetched.topic, fetched.partition
            course, offset = visit.requested[place]
            visit.mark_advanced(place)
            if course.is_ending or course.queue.next_fetch_offset != offset:
                continue
            if fetched.error_code:
                source = course.queue.lease.source
                self.cluster.update_leader(source, fetched.current_leader, answer.node_endpoints)
                self._handle_error(course, ErrorCode(fetched.error_code), now)
            elif fetched.diverging_epoch:
                course.end_now(
                    LeaseEndReason.OUT_OF_RANGE,
                    f"the source was truncated: its epoch {fetched.diverging_epoch.epoch} ends"
                    f" at offset"
                    f" {fetched.diverging_epoch.end_offset}, before the position {offset}",
                )
            else:
                self._handle_records(course, fetched, answer)

    def _handle_records(
        self, course: LeasedPartition, fetched: FetchedPartition, answer: FetchResponseData
    ) -> None:
        course.fetch_backoff.clear()
        course.end_offset = (
            fetched.last_stable_offset if self.read_committed else fetched.high_watermark
        )
        replica = fetched.preferred_read_replica
        if replica >= 0 and replica != course.preferred_read_replica:
            course.preferred_read_replica = replica
            self.invalidate_brokers()
        if not fetched.records:
            return
        before = course.queue.next_fetch_offset
        refusal = course.converter.convert(
            course.queue, answer.frame, fetched.records, fetched.aborted_transactions
        )
        if refusal:
            course.end_after_queue(LeaseEndReason.REFUSED, refusal.reason)
        if course.queue.next_fetch_offset > before:
            self.on_fetched(course, len(fetched.records))

    def _handle_error(self, course: LeasedPartition, code: ErrorCode, now: float) -> None:
        source = course.queue.lease.source
        course.preferred_read_replica = None
        self.invalidate_brokers()
        match code.action:
            case ErrorAction.OFFSET:
                course.end_after_queue(
                    LeaseEndReason.OUT_OF_RANGE,
                    f"the source's log does not hold offset {course.queue.next_fetch_offset}",
                )
            case ErrorAction.TOPIC_GONE:
                course.end_after_queue(
                    LeaseEndReason.SOURCE_GONE, f"the source topic {source.topic} is gone: {code}"
                )
            case ErrorAction.NOT_AUTHORIZED:
                course.end_after_queue(
                    LeaseEndReason.NOT_AUTHORIZED,
                    f"the source refuses to let {source.topic} be read: {code};"
                    " grant Read on the topic",
                )
            case _:
                course.fetch_backoff.start(f"source: {code}", now)
                self.cluster.request_metadata_update(source.topic)


def _partition_max_bytes(size: int, partitions: int) -> int:
    """How much of one partition an answer may hold, if so many share it.

    A power of two: a limit that hardly ever changes need not be told to a session.
    """
    share = size // partitions
    return max(1 << max(share.bit_length() - 1, 0), PARTITION_BYTES)
