"""Fetches from the source brokers of a task: one request at a time on each broker.

A request names a partition unless it is in a backoff, its lease ends, or enough of it is queued.
All partitions together stay within the memory budget. `fetch_plan` decides how many bytes a request
asks for and which partitions it names.

A fetch waits at the broker for new records, at the longest until a partition that it leaves out may
take part again. A broker without news for some seconds gets requests that wait longer. A broker
serves one request of a connection at a time, so partitions that are assigned to it meanwhile would
wait as long: the fetcher replaces the connection, and no partition counts the request as lost.

Fetched batches go to the partition's queue; the sender then sends them. Transformations may take
long, and the task must renew its leases meanwhile: what is not converted after `MAX_CONVERSION_S`
is fetched again, and the next requests are smaller.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.fetch_plan import (
    MIN_FETCH_BYTES,
    ConversionTurn,
    FetchPlan,
    FetchSizeEstimator,
)
from sparkmirror.copy.task.fetch_wait import MAX_WAIT_MS, FetchWait
from sparkmirror.copy.task.leased_partition import (
    UNKNOWN_END_OFFSET,
    LeasedPartition,
    ignore_change,
)
from sparkmirror.copy.task.produce.error_reactions import lease_end_for_fetch_error
from sparkmirror.copy.task.produce.sender import Sender
from sparkmirror.copy.task.throttle import Throttle
from sparkmirror.errors import ClusterError
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.protocol.error_codes import ErrorCode
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
from sparkmirror.wire.protocol.topics.topic_key import TopicKey

PARTITION_BYTES: Final = 1 << 20
MAX_BUFFERED_RESPONSES: Final = 4
"""How many responses may be in memory before the next fetch waits for acknowledgements. What cannot
be sent does not count: some partitions in trouble do not stop all others."""
LONG_POLL_MS: Final = 500
SHORT_POLL_MS: Final = 5
IDLE_POLL_MS: Final = 1_800
"""How long a fetch waits at a broker without news. Below the interval at which leases are renewed,
so that a renewal follows an answer and needs no wake-up of its own."""
QUIET_S = 2.0
"""After so long without news from a broker a fetch waits longer."""
MAX_END_AGE_S: Final = 5.0
"""After so long without an answer to a fetch, the end of the source's log may have moved."""
MAX_CONVERSION_S: Final = 0.5
"""After so long the conversion of a response stops, at the end of a batch."""
REFRESH_INTERVAL_S: Final = 30.0
"""How often to assign partitions to brokers again if no event invalidates the assignment. Every
event that changes it does so: this only limits the effect of an omission."""


@dataclass(slots=True)
class Fetcher:
    """Keeps one fetch request open on every source broker, within the memory budget."""

    cluster: ClusterConnections
    sender: Sender
    throttle: Throttle
    read_committed: bool
    rack: str
    request_timeout_s: float
    on_converted: Callable[[LeasedPartition], None] = ignore_change
    """Called when records of a partition were converted."""
    _fetch_sizes: dict[int, FetchSizeEstimator] = field(default_factory=dict)
    _plans: dict[int, FetchPlan] = field(default_factory=dict)
    _waits: dict[int, FetchWait] = field(default_factory=lambda: defaultdict(FetchWait))
    _by_broker: dict[int, list[LeasedPartition]] = field(default_factory=dict)
    """The partitions to fetch from each broker."""
    _refresh_at: float = 0.0
    _answered_at: dict[int, float] = field(default_factory=dict)
    """When each broker last answered a fetch."""

    def is_answered(self, partition: LeasedPartition, now: float) -> bool:
        """Whether the broker of a partition has answered a fetch within `MAX_END_AGE_S`."""
        node = partition.preferred_read_replica
        if node is None:
            node = self.cluster.leader_node(partition.source)
        return node is not None and now - self._answered_at.get(node, 0.0) <= MAX_END_AGE_S

    def answering_nodes(self, now: float) -> frozenset[int]:
        """Return the brokers that have answered a fetch within `MAX_END_AGE_S`."""
        answered = self._answered_at.items()
        return frozenset(node for node, at in answered if now - at <= MAX_END_AGE_S)

    def invalidate_brokers(self) -> None:
        """Assign partitions to brokers again: partitions, leaders or replicas have changed."""
        self._refresh_at = 0.0
        self.cluster.invalidate_leaders()

    def poll(self, partitions: Iterable[LeasedPartition], now: float) -> None:
        """Send a fetch to every source broker that has none open, as far as limits allow."""
        if not self.throttle.allows(now) or not self.cluster.budget.available:
            return
        if now >= self._refresh_at:
            self._assign_to_brokers(partitions)
            self._refresh_at = now + REFRESH_INTERVAL_S
            self._end_idle_polls()
        for node, assigned in self._by_broker.items():
            connection = self.cluster.connection(node)
            if (
                connection
                and not connection.in_flight_count
                and now >= connection.throttled_until
                and now >= self._waits[node].paused_until
            ):
                self._fetch(node, connection, assigned, now)

    def next_fetch_at(self, now: float) -> float:
        """Return when the next pause before a fetch ends; infinity if there is none."""
        return min(
            (wait.paused_until for wait in self._waits.values() if wait.paused_until > now),
            default=math.inf,
        )

    def lets_records_collect(self, now: float) -> bool:
        """Whether records collect for a fetch from a broker, and no last answer was large."""
        waits = self._waits.values()
        return any(wait.is_answer_due(now) for wait in waits) and not any(
            wait.is_catching_up for wait in waits
        )

    def _assign_to_brokers(self, partitions: Iterable[LeasedPartition]) -> None:
        """Choose the broker of every partition: the preferred replica if reachable, or the leader.

        A partition without a known leader is left out until the metadata has one.
        """
        self._by_broker = {}
        for partition in partitions:
            if partition.preferred_read_replica is not None and self.cluster.is_unreachable(
                partition.preferred_read_replica
            ):
                partition.preferred_read_replica = None
                partition.mark_changed()
                self.cluster.invalidate_leaders()
            node = partition.preferred_read_replica
            if node is None:
                node = self.cluster.leader_node(partition.source)
            if node is not None:
                self._by_broker.setdefault(node, []).append(partition)
        for plan in self._plans.values():
            plan.is_current = False
        for node in self._waits.keys() - self._by_broker.keys():
            del self._waits[node]

    def _end_idle_polls(self) -> None:
        """Replace the connection of a long poll that does not name every assigned partition."""
        for node, assigned in self._by_broker.items():
            plan = self._plans.get(node)
            if (
                plan
                and plan.is_in_idle_poll
                and self.cluster.connection(node) is plan.connection
                and not plan.reads_all(assigned)
            ):
                del self._plans[node]
                self.cluster.reopen(node)

    def _fetch(
        self,
        node: int,
        connection: BrokerConnection,
        assigned: list[LeasedPartition],
        now: float,
    ) -> None:
        estimator = self._fetch_sizes.get(node)
        if estimator is None:
            estimator = self._fetch_sizes[node] = FetchSizeEstimator()
        sendable_bytes = self.cluster.budget.used - self.sender.blocked_bytes
        if sendable_bytes >= MAX_BUFFERED_RESPONSES * estimator.max_bytes:
            return
        size = max(min(estimator.max_bytes, self.cluster.budget.available), MIN_FETCH_BYTES // 4)
        size = min(size, self.throttle.max_fetch_bytes or size)
        max_queued_bytes = MAX_BUFFERED_RESPONSES * estimator.max_bytes // 2
        plan = self._plans.get(node)
        if plan and plan.can_continue(connection, _partition_max_bytes(size, len(plan.requested))):
            plan.update(max_queued_bytes, now)
            if plan.requested:
                positions, forgotten = plan.next_incremental()
                self._send_fetch(node, plan, positions, forgotten, size, estimator, now)
            return
        fetchable: list[LeasedPartition] = []
        excluded: list[LeasedPartition] = []
        for partition in assigned:
            if partition.can_fetch(max_queued_bytes, now):
                fetchable.append(partition)
            elif not partition.is_ending:
                excluded.append(partition)
        if not fetchable:
            return
        first = estimator.next_rotation() % len(fetchable)
        fetchable = fetchable[first:] + fetchable[:first]
        plan = self._plan_for(node, connection, assigned, now)
        positions, forgotten = plan.next_full(
            fetchable,
            excluded,
            _partition_max_bytes(size, len(fetchable)),
            max_queued_bytes,
            partial(self._topic_key, by_id=plan.by_id),
        )
        self._send_fetch(node, plan, positions, forgotten, size, estimator, now)

    def _plan_for(
        self, node: int, connection: BrokerConnection, partitions: list[LeasedPartition], now: float
    ) -> FetchPlan:
        """Return the plan of a broker, a new one if the connection or the topic keys changed."""
        by_id = supports_topic_ids(connection.api_versions) and all(
            partition.source_topic_id for partition in partitions
        )
        plan = self._plans.get(node)
        if plan is None or plan.connection is not connection or plan.by_id is not by_id:
            version = fetch_version(connection.api_versions, by_id=by_id)
            plan = self._plans[node] = FetchPlan(connection, by_id, version, now)
        return plan

    def _topic_key(self, partition: LeasedPartition, *, by_id: bool) -> TopicKey:
        return self.cluster.topic_key(
            partition.source.topic, partition.source_topic_id, by_id=by_id
        )

    def _send_fetch(
        self,
        node: int,
        plan: FetchPlan,
        positions: list[FetchPosition],
        forgotten: tuple[TopicKeyPartition, ...],
        size: int,
        estimator: FetchSizeEstimator,
        now: float,
    ) -> None:
        connection = plan.connection
        wait, wait_ms = self._waits[node], max_wait_ms(plan, now)
        min_bytes = wait.min_bytes(len(plan.requested))
        if min_bytes > 1:
            wait_ms = min(wait_ms, MAX_WAIT_MS)
        plan.is_in_idle_poll = wait_ms > LONG_POLL_MS
        wait.is_fetch_open = True
        params = FetchParams(
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=size,
            read_committed=self.read_committed,
            rack=self.rack,
            session=plan.session.id_and_epoch,
            forgotten=forgotten,
        )
        request = fetch_request(plan.version, params, positions)
        self.cluster.loop.run_guarded(
            connection,
            lambda: connection.send(
                request,
                on_response=partial(self._on_response, node, plan, estimator, now),
                on_error=partial(self._on_request_lost, node, plan),
                deadline=now + self.request_timeout_s,
            ),
        )

    # -- responses -------------------------------------------------------------------------------

    def _on_response(
        self,
        node: int,
        plan: FetchPlan,
        estimator: FetchSizeEstimator,
        sent_at: float,
        response: FetchResponseData,
    ) -> None:
        now = self._answered_at[node] = time.monotonic()
        estimator.update(response.frame.size, now - sent_at)
        record_bytes = sum(len(fetched.records) for fetched in response.partitions)
        wait = self._waits.get(node, FetchWait())  # absent without partitions
        wait.on_answer(now, record_bytes, len(plan.requested))
        plan.is_in_idle_poll = False
        if response.error_code or response.partitions:
            plan.quiet_since = now
        if response.error_code in SESSION_ERRORS:
            plan.session.reset()  # the next request names every partition again
            return
        plan.session.on_response(response.session_id)
        if response.error_code:
            plan.is_current = False
            for partition, _ in plan.requested.values():
                self._handle_error(partition, ErrorCode(response.error_code), now)
            return
        turn = ConversionTurn(now + MAX_CONVERSION_S)
        for fetched in plan.in_turn(response.partitions):
            key = fetched.topic, fetched.partition
            partition, offset = plan.requested[key]
            plan.mark_advanced(key)
            partition.mark_changed()
            if partition.is_ending or partition.queue.next_fetch_offset != offset:
                continue
            if fetched.error_code:
                self.cluster.update_leader(
                    partition.source, fetched.current_leader, response.node_endpoints
                )
                self._handle_error(partition, ErrorCode(fetched.error_code), now)
            elif fetched.diverging_epoch:
                partition.end_now(
                    LeaseEndReason.OUT_OF_RANGE,
                    f"the source was truncated: its epoch {fetched.diverging_epoch.epoch} ends at"
                    f" offset {fetched.diverging_epoch.end_offset}, before the position {offset}",
                )
                partition.end_offset = UNKNOWN_END_OFFSET
            elif not self._handle_records(partition, fetched, response, turn):
                plan.postponed.append(key)
        estimator.on_converted(turn)

    def _on_request_lost(self, node: int, plan: FetchPlan, error: ClusterError) -> None:
        if self._plans.get(node) is not plan:
            return  # the fetcher itself has replaced the connection
        self._waits.pop(node, None)
        plan.session.reset()
        plan.is_in_idle_poll = False
        for partition, _ in plan.requested.values():
            partition.fetch_backoff.start(f"source: {error}", time.monotonic())
            partition.preferred_read_replica = None
            partition.mark_changed()
        self.invalidate_brokers()

    def _handle_records(
        self,
        partition: LeasedPartition,
        fetched: FetchedPartition,
        response: FetchResponseData,
        turn: ConversionTurn,
    ) -> bool:
        """Queue what was fetched of a partition; return False if there is no time for it."""
        partition.fetch_backoff.clear()
        partition.end_offset = (
            fetched.last_stable_offset if self.read_committed else fetched.high_watermark
        )
        replica = fetched.preferred_read_replica
        if replica >= 0 and replica != partition.preferred_read_replica:
            partition.preferred_read_replica = replica
            self.invalidate_brokers()
        if not fetched.records:
            return True
        size, converter = len(fetched.records), partition.converter
        if turn.converted_bytes and converter.is_over(turn.deadline):
            turn.unread_bytes += size
            return False
        before = partition.queue.next_fetch_offset
        uncopyable = converter.convert(
            partition.queue,
            response.frame,
            fetched.records,
            fetched.aborted_transactions,
            turn.deadline,
        )
        turn.unread_bytes += converter.unread_bytes
        turn.converted_bytes += size - converter.unread_bytes
        if uncopyable and uncopyable.wanted_topic:
            partition.end_for_topic(uncopyable.wanted_topic, uncopyable.reason)
        elif uncopyable:
            partition.end_after_queue(LeaseEndReason.REFUSED, uncopyable.reason)
        if partition.queue.next_fetch_offset > before:
            self.throttle.consume(size, time.monotonic())
            self.sender.mark_fetched(partition)
            self.on_converted(partition)
        return True

    def _handle_error(self, partition: LeasedPartition, code: ErrorCode, now: float) -> None:
        partition.mark_changed()
        if partition.preferred_read_replica is not None:
            partition.preferred_read_replica = None
            self.invalidate_brokers()
        end = lease_end_for_fetch_error(partition.source, partition.queue.next_fetch_offset, code)
        if end:
            partition.end_after_queue(end.reason, end.message)
            partition.end_offset = UNKNOWN_END_OFFSET
        else:
            partition.fetch_backoff.start(f"source: {code}", now)
            self.cluster.request_metadata_update(partition.source.topic)


def max_wait_ms(plan: FetchPlan, now: float) -> int:
    """Return how long a request may wait at the broker for new records."""
    if plan.excluded:
        until_ms = math.ceil((plan.excluded_until - now) * 1000)
        return min(max(until_ms, SHORT_POLL_MS), LONG_POLL_MS)
    return IDLE_POLL_MS if now - plan.quiet_since >= QUIET_S else LONG_POLL_MS


def _partition_max_bytes(size: int, partitions: int) -> int:
    """Return the maximum bytes of one partition in a response for so many partitions.

    A power of two changes rarely, so a fetch session rarely has to name a partition because of it.
    """
    share = size // max(partitions, 1)
    return max(1 << max(share.bit_length() - 1, 0), PARTITION_BYTES)
