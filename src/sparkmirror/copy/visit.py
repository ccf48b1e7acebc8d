"""A visit: what one source broker is asked for, from fetch to fetch.

The broker remembers what it was asked for (`wire.fetch_session`), and so does this: as long as the
same partitions are read there, only those that an answer brought something for are looked at and
named again. So a fetch costs what has moved, however many partitions stand still.

Knows courses and positions, and sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sparkmirror.copy.course import Course
from sparkmirror.wire.connection import Connection
from sparkmirror.wire.fetch import Place, Position
from sparkmirror.wire.fetch_session import FetchSession
from sparkmirror.wire.leaders import NO_EPOCH
from sparkmirror.wire.topickey import TopicKey

Asked: TypeAlias = dict[Place, tuple[Course, int]]
"""Which partition was asked for, and from which offset on."""


@dataclass(slots=True)
class Visit:
    """One connection to one source broker; another one, or other names of topics, begin anew."""

    connection: Connection
    by_id: bool
    session: FetchSession = field(default_factory=FetchSession)
    asked: Asked = field(default_factory=dict)
    limit: int = 0
    """How many bytes of one partition an answer may hold."""
    is_whole: bool = False
    """Whether every partition that is read there takes part."""
    is_settled: bool = False
    """Whether the same partitions are to be asked for again."""
    _moved: dict[Place, Course] = field(default_factory=dict)

    def moved(self, place: Place) -> None:
        """An answer has brought something for a partition."""
        self._moved[place] = self.asked[place][0]

    def may_go_on(
        self, connection: Connection, limit: int, is_hungry: Callable[[Course], bool]
    ) -> bool:
        """Whether all that was asked for is to be asked for again, some of it from further on."""
        return (
            self.is_settled
            and self.is_whole
            and self.connection is connection
            and self.session.is_kept
            and self.limit == limit
            and all(map(is_hungry, self._moved.values()))
        )

    def go_on(self) -> list[Position]:
        """What the next request must name: whoever has moved."""
        further: dict[Place, Position] = {}
        for place, course in self._moved.items():
            position = further[place] = _position(place, course, self.limit)
            self.asked[place] = course, position.offset
        self._moved.clear()
        return self.session.go_on(further)

    def begin(
        self, courses: Sequence[Course], limit: int, key_of: Callable[[Course], TopicKey]
    ) -> tuple[list[Position], tuple[Place, ...]]:
        """What the next request must name, and take back, to ask for these partitions."""
        self.asked, self.limit, self.is_settled = {}, limit, True
        self._moved.clear()
        wanted: dict[Place, Position] = {}
        for course in courses:
            place = key_of(course), course.partition.lease.source.partition
            position = wanted[place] = _position(place, course, limit)
            self.asked[place] = course, position.offset
        return self.session.next(wanted)


def _position(place: Place, course: Course, limit: int) -> Position:
    return Position(*place, course.partition.fetched, limit, NO_EPOCH, course.sorter.leader_epoch)
