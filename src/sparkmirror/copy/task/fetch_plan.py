"""A visit: what one source broker is asked for, from fetch to fetch.

The broker remembers what it was asked for (`wire.protocol.fetch_session`), and so does this: as
long as the same partitions are read there, only those that an answer brought something for are
looked at and named again. So a fetch costs what has moved, however many partitions stand still.

Knows courses and positions, and sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.wire.net.connection import BrokerConnection
from sparkmirror.wire.protocol.fetch import FetchPosition, TopicKeyPartition
from sparkmirror.wire.protocol.fetch_session import FetchSession
from sparkmirror.wire.protocol.leaders import NO_LEADER_EPOCH
from sparkmirror.wire.protocol.topic_key import TopicKey

RequestedPartitions: TypeAlias = dict[TopicKeyPartition, tuple[LeasedPartition, int]]
"""Which partition was asked for, and from which offset on."""


@dataclass(slots=True)
class FetchPlan:
    """One connection to one source broker; another one, or other names of topics, begin anew."""

    connection: BrokerConnection
    by_id: bool
    session: FetchSession = field(default_factory=FetchSession)
    requested: RequestedPartitions = field(default_factory=dict)
    partition_max_bytes: int = 0
    """How many bytes of one partition an answer may hold."""
    is_complete: bool = False
    """Whether every partition that is read there takes part."""
    is_current: bool = False
    """Whether the same partitions are to be asked for again."""
    _advanced: dict[TopicKeyPartition, LeasedPartition] = field(default_factory=dict)

    def mark_advanced(self, place: TopicKeyPartition) -> None:
        """An answer has brought something for a partition."""
        self._advanced[place] = self.requested[place][0]

    def can_continue(
        self, connection: BrokerConnection, limit: int, is_hungry: Callable[[LeasedPartition], bool]
    ) -> bool:
        """Whether all that was asked for is to be asked for again, some of it from further on."""
        return (
            self.is_current
            and self.is_complete
            and self.connection is connection
            and self.session.is_established
            and self.partition_max_bytes == limit
            and all(map(is_hungry, self._advanced.values()))
        )

    def next_incremental(self) -> list[FetchPosition]:
        """What the next request must name: whoever has moved."""
        further: dict[TopicKeyPartition, FetchPosition] = {}
        for place, course in self._advanced.items():
            position = further[place] = _fetch_position(place, course, self.partition_max_bytes)
            self.requested[place] = course, position.offset
        self._advanced.clear()
        return self.session.next_incremental_request(further)

    def next_full(
        self,
        courses: Sequence[LeasedPartition],
        limit: int,
        key_of: Callable[[LeasedPartition], TopicKey],
    ) -> tuple[list[FetchPosition], tuple[TopicKeyPartition, ...]]:
        """What the next request must name, and take back, to ask for these partitions."""
        self.requested, self.partition_max_bytes, self.is_current = {}, limit, True
        self._advanced.clear()
        wanted: dict[TopicKeyPartition, FetchPosition] = {}
        for course in courses:
            place = key_of(course), course.queue.lease.source.partition
            position = wanted[place] = _fetch_position(place, course, limit)
            self.requested[place] = course, position.offset
        return self.session.next_request(wanted)


def _fetch_position(place: TopicKeyPartition, course: LeasedPartition, limit: int) -> FetchPosition:
    return FetchPosition(
        *place,
        course.queue.next_fetch_offset,
        limit,
        NO_LEADER_EPOCH,
        course.converter.leader_epoch,
    )
