"""What a task requests from one source broker, from fetch to fetch.

The broker remembers the requested partitions (`wire.protocol.fetch_session`), and so does the plan.
While the same partitions are read, a request names only those for which a response had data, and
those that may be fetched again. It removes those in a backoff or with a full queue. So the cost of
a fetch follows from the partitions that move, not from all partitions.

`FetchSizeEstimator` chooses how many bytes a request asks for. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.protocol.fetch import FetchedPartition, FetchPosition, TopicKeyPartition
from sparkmirror.wire.protocol.fetch_session import FetchSession
from sparkmirror.wire.protocol.topics.current_leader import NO_LEADER_EPOCH
from sparkmirror.wire.protocol.topics.topic_key import TopicKey

MIN_FETCH_BYTES: Final = 4 << 20
MAX_FETCH_BYTES: Final = 32 << 20

RequestedPartitions: TypeAlias = dict[TopicKeyPartition, tuple[LeasedPartition, int]]
"""The requested partitions, each with the requested offset."""


@dataclass(slots=True)
class FetchPlan:
    """The fetch session on one connection. Another connection needs another plan.

    Invariant: a request makes the broker keep exactly the partitions in `requested`, with the
    offsets there. Each partition that is read from the broker and does not end is in `requested`,
    or in `excluded` while it may not be fetched.
    """

    connection: BrokerConnection
    by_id: bool
    """Whether requests name topics by id. A change needs another plan."""
    version: int
    """The version of the requests."""
    quiet_since: float = 0.0
    """When the last answer had news, or the plan began."""
    session: FetchSession = field(default_factory=FetchSession)
    requested: RequestedPartitions = field(default_factory=dict)
    excluded: dict[TopicKeyPartition, LeasedPartition] = field(default_factory=dict)
    """The partitions that are in a backoff, or of which enough is queued."""
    excluded_until: float = float("inf")
    """The earliest moment at which an excluded partition may be fetched again."""
    partition_max_bytes: int = 0
    """The maximum number of bytes of one partition in a response."""
    is_current: bool = False
    """Whether the same partitions are read from the broker as at the last request."""
    is_in_idle_poll: bool = False
    """Whether a request is open that waits longer at the broker than new partitions may wait."""
    postponed: list[TopicKeyPartition] = field(default_factory=list)
    """The partitions of the last response that were not converted in time, in order."""
    _advanced: dict[TopicKeyPartition, LeasedPartition] = field(default_factory=dict)
    """What the next request must name."""
    _forgotten: dict[TopicKeyPartition, None] = field(default_factory=dict)
    """What the next request must remove from the session."""

    def mark_advanced(self, key: TopicKeyPartition) -> None:
        """Record that a response had data or an error for a partition."""
        self._advanced[key] = self.requested[key][0]

    def in_turn(self, partitions: list[FetchedPartition]) -> list[FetchedPartition]:
        """Return the partitions of a response; those that were postponed are the first now.

        None is postponed afterwards. A broker answers in the same order again and again: without
        turns the last partitions would wait forever.
        """
        if not self.postponed:
            return partitions
        turns = {key: turn for turn, key in enumerate(self.postponed)}
        self.postponed = []
        return sorted(partitions, key=lambda one: turns.get((one.topic, one.partition), len(turns)))

    def can_continue(self, connection: BrokerConnection, partition_max_bytes: int) -> bool:
        """Whether the next request follows from the last one and the advanced partitions."""
        return (
            self.is_current
            and self.connection is connection
            and self.session.is_established
            and self.partition_max_bytes == partition_max_bytes
        )

    def reads_all(self, partitions: Iterable[LeasedPartition]) -> bool:
        """Whether all these partitions take part or are excluded for the moment."""
        known = {partition for partition, _ in self.requested.values()}
        known.update(self.excluded.values())
        return known.issuperset(partitions)

    def update(self, max_queued_bytes: int, now: float) -> None:
        """Exclude advanced partitions that may not be fetched now, include those that may again.

        Looks only at advanced and excluded partitions.
        """
        for key, partition in list(self._advanced.items()):
            if not partition.can_fetch(max_queued_bytes, now):
                del self._advanced[key], self.requested[key]
                self._forgotten[key] = None
                if not partition.is_ending:
                    self._exclude(key, partition, max_queued_bytes)
        if now >= self.excluded_until:
            self._include_fetchable(max_queued_bytes, now)

    def next_incremental(self) -> tuple[list[FetchPosition], tuple[TopicKeyPartition, ...]]:
        """Return what the next request must name and forget: what changed since the last one."""
        named: dict[TopicKeyPartition, FetchPosition] = {}
        for key, partition in self._advanced.items():
            position = named[key] = _fetch_position(key, partition, self.partition_max_bytes)
            self.requested[key] = partition, position.offset
        forgotten = tuple(self._forgotten)
        self._advanced.clear()
        self._forgotten.clear()
        return self.session.next_incremental_request(named, forgotten)

    def next_full(
        self,
        partitions: Sequence[LeasedPartition],
        excluded: Iterable[LeasedPartition],
        partition_max_bytes: int,
        max_queued_bytes: int,
        topic_key: Callable[[LeasedPartition], TopicKey],
    ) -> tuple[list[FetchPosition], tuple[TopicKeyPartition, ...]]:
        """Return what the next request must name, and forget, to read these partitions.

        A partition with another lease needs another session: the broker answers only news, and the
        end of the log, which the lease does not know yet, is no news.
        """
        if self._forgotten:  # the broker still has them; a new lease of one would go unnoticed
            self.session.reset()
        before = self.requested
        self.requested, self.partition_max_bytes, self.is_current = {}, partition_max_bytes, True
        self._advanced.clear()
        self._forgotten.clear()
        self.excluded, self.excluded_until = {}, float("inf")
        for partition in excluded:
            key = topic_key(partition), partition.source.partition
            self._exclude(key, partition, max_queued_bytes)
        positions: dict[TopicKeyPartition, FetchPosition] = {}
        for partition in partitions:
            key = topic_key(partition), partition.source.partition
            position = positions[key] = _fetch_position(key, partition, partition_max_bytes)
            self.requested[key] = partition, position.offset
            if key in before and before[key][0] is not partition:
                self.session.reset()
        return self.session.next_request(positions)

    def _exclude(
        self, key: TopicKeyPartition, partition: LeasedPartition, max_queued_bytes: int
    ) -> None:
        self.excluded[key] = partition
        self.excluded_until = min(self.excluded_until, partition.fetchable_at(max_queued_bytes))

    def _include_fetchable(self, max_queued_bytes: int, now: float) -> None:
        excluded, self.excluded, self.excluded_until = self.excluded, {}, float("inf")
        for key, partition in excluded.items():
            if partition.can_fetch(max_queued_bytes, now):
                self._forgotten.pop(key, None)
                self._advanced[key] = partition
                self.requested[key] = partition, partition.queue.next_fetch_offset
            elif not partition.is_ending:
                self._exclude(key, partition, max_queued_bytes)


def _fetch_position(
    key: TopicKeyPartition, partition: LeasedPartition, partition_max_bytes: int
) -> FetchPosition:
    return FetchPosition(
        *key,
        partition.queue.next_fetch_offset,
        partition_max_bytes,
        NO_LEADER_EPOCH,
        partition.converter.leader_epoch,
    )


@dataclass(slots=True)
class ConversionTurn:
    """How much of one response is converted until a deadline."""

    deadline: float
    converted_bytes: int = 0
    unread_bytes: int = 0


@dataclass(slots=True)
class FetchSizeEstimator:
    """The size of a fetch from one broker: twice the bandwidth-delay product.

    The fastest response so far counts as the round trip time. A short round trip keeps responses
    small enough for the processor's cache. With a long one they grow until the link is full.
    """

    max_bytes: int = MIN_FETCH_BYTES
    _round_trip_s: float = float("inf")
    _rotation: int = 0

    def next_rotation(self) -> int:
        """Return the number of full requests to this broker, this one included.

        The first partition of a request may fill the whole response, so each request begins with
        another partition. The count is per broker: with a common count some partitions of a broker
        would never be the first.
        """
        self._rotation += 1
        return self._rotation

    def update(self, received: int, took_s: float) -> None:
        """Adapt the size to a response of so many bytes that took so long."""
        self._round_trip_s = min(self._round_trip_s, took_s)
        if received >= self.max_bytes // 2:
            in_transit = received / max(took_s, 1e-6) * self._round_trip_s
            self.max_bytes = int(min(max(2 * in_transit, MIN_FETCH_BYTES), MAX_FETCH_BYTES))

    def on_converted(self, turn: ConversionTurn) -> None:
        """Shrink the size if a response was not converted in time: the rest was fetched in vain."""
        if turn.unread_bytes:
            size = min(self.max_bytes, 2 * turn.converted_bytes)
            self.max_bytes = max(size, MIN_FETCH_BYTES)
