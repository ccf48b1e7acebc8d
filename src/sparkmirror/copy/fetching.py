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

from sparkmirror.copy.appetite import SMALLEST_ANSWER, Appetite
from sparkmirror.copy.course import Course
from sparkmirror.copy.messages import How
from sparkmirror.copy.side import Side
from sparkmirror.copy.throttle import Throttle
from sparkmirror.copy.visit import Visit
from sparkmirror.errors import ClusterError
from sparkmirror.wire.codes import Action, Code
from sparkmirror.wire.connection import Connection
from sparkmirror.wire.fetch import (
    FetchAnswer,
    FetchedPartition,
    FetchLimits,
    Place,
    Position,
    fetch_request,
    fetch_version,
    takes_ids,
)
from sparkmirror.wire.fetch_session import LOST
from sparkmirror.wire.topickey import TopicKey

PARTITION_BYTES = 1 << 20
ANSWERS_AHEAD = 4
"""How many answers may lie in memory before the next fetch waits for acknowledgements."""
LONG_POLL_MS = 500
SHORT_POLL_MS = 5
ANSWER_WITHIN_S = 10.0
LOOK_EVERY_S = 0.5
"""How often to look where every partition is to be read, if nothing tells that this has changed."""


@dataclass(slots=True)
class Fetching:
    """Keeps every source broker busy, within the budget."""

    side: Side
    read_committed: bool
    rack: str
    arrived: Callable[[Course, int], None]
    """Told when a partition has so many new bytes to send."""
    _appetites: dict[int, Appetite] = field(default_factory=dict)
    _visits: dict[int, Visit] = field(default_factory=dict)
    _there: dict[int, list[Course]] = field(default_factory=dict)
    """Which broker is to be asked for which partitions."""
    _look_at: float = 0.0

    def look_now(self) -> None:
        """There are other partitions than before, or they are to be read elsewhere."""
        self._look_at = 0.0

    def pump(self, courses: Iterable[Course], now: float, throttle: Throttle) -> None:
        """Ask every idle source broker for what its partitions have room for."""
        if not throttle.allows(now) or not self.side.budget.free:
            return
        if now >= self._look_at:
            self._look(courses)
            self._look_at = now + LOOK_EVERY_S
        for node, there in self._there.items():
            connection = self.side.connection(node)
            if connection and not connection.in_flight and now >= connection.muted_until:
                self._fetch(node, connection, there, now, throttle.most)

    def _look(self, courses: Iterable[Course]) -> None:
        """Find out where every partition is to be read."""
        self._there = {}
        for course in courses:
            if course.read_replica is not None and self.side.is_shut(course.read_replica):
                course.read_replica = None
            node = course.read_replica
            if node is None:
                node = self.side.node_of(course.partition.lease.source)
            if node is not None:
                self._there.setdefault(node, []).append(course)
        for visit in self._visits.values():
            visit.is_settled = False

    def _fetch(
        self,
        node: int,
        connection: Connection,
        there: list[Course],
        now: float,
        most: int | None,
    ) -> None:
        appetite = self._appetites.get(node)
        if appetite is None:
            appetite = self._appetites[node] = Appetite()
        if self.side.budget.used >= ANSWERS_AHEAD * appetite.bytes:
            return
        room = ANSWERS_AHEAD * appetite.bytes // 2
        size = max(min(appetite.bytes, self.side.budget.free), SMALLEST_ANSWER // 4)
        size = min(size, most or size)

        def is_hungry(course: Course) -> bool:
            has_room = course.partition.queued_bytes < room
            return has_room and now >= course.reading.until and not course.is_leaving

        visit = self._visits.get(node)
        if visit and visit.may_go_on(connection, _limit(size, len(visit.asked)), is_hungry):
            self._ask(visit, visit.go_on(), (), size, appetite, now)
            return
        staying = [course for course in there if not course.is_leaving]
        hungry = [course for course in staying if is_hungry(course)]
        if not hungry:
            return
        first = appetite.next_turn() % len(hungry)
        hungry = hungry[first:] + hungry[:first]
        visit = self._visit(node, connection, hungry)
        visit.is_whole = len(hungry) == len(staying)
        key_of = partial(self._key_of, by_id=visit.by_id)
        positions, forgotten = visit.begin(hungry, _limit(size, len(hungry)), key_of)
        self._ask(visit, positions, forgotten, size, appetite, now)

    def _visit(self, node: int, connection: Connection, courses: list[Course]) -> Visit:
        """The visit to a broker; another connection, or other names of topics, begin anew."""
        by_id = takes_ids(connection.versions) and all(
            course.partition.lease.source_topic_id for course in courses
        )
        visit = self._visits.get(node)
        if visit is None or visit.connection is not connection or visit.by_id is not by_id:
            visit = self._visits[node] = Visit(connection, by_id)
        return visit

    def _key_of(self, course: Course, *, by_id: bool) -> TopicKey:
        lease = course.partition.lease
        return self.side.topic_key(lease.source.topic, lease.source_topic_id, by_id=by_id)

    def _ask(
        self,
        visit: Visit,
        positions: list[Position],
        forgotten: tuple[Place, ...],
        size: int,
        appetite: Appetite,
        now: float,
    ) -> None:
        connection, session = visit.connection, visit.session
        limits = FetchLimits(
            max_wait_ms=LONG_POLL_MS if visit.is_whole else SHORT_POLL_MS,
            max_bytes=size,
            read_committed=self.read_committed,
            rack=self.rack,
            session=session.key,
            forgotten=forgotten,
        )
        version = fetch_version(connection.versions, by_id=visit.by_id)
        request = fetch_request(version, limits, positions)

        def heard(answer: FetchAnswer) -> None:
            heard_at = time.monotonic()
            appetite.learn(answer.frame.size, heard_at - now)
            if answer.error in LOST:
                session.reset()  # named in full, the same is asked again at once
                return
            session.answered(answer.session_id)
            self._sort_out(visit, answer, heard_at)

        def lost(error: ClusterError) -> None:
            session.reset()
            for course, _ in visit.asked.values():
                course.reading.begin(f"source: {error}", time.monotonic())
                course.read_replica = None
            self.look_now()

        self.side.loop.guard(
            connection,
            lambda: connection.send(request, then=heard, lost=lost, deadline=now + ANSWER_WITHIN_S),
        )

    def _sort_out(self, visit: Visit, answer: FetchAnswer, now: float) -> None:
        if answer.error:
            for course, _ in visit.asked.values():
                self._troubled(course, Code(answer.error), now)
            return
        for fetched in answer.partitions:
            place = fetched.topic, fetched.partition
            course, offset = visit.asked[place]
            visit.moved(place)
            if course.is_leaving or course.partition.fetched != offset:
                continue
            if fetched.error:
                source = course.partition.lease.source
                self.side.hear_of(source, fetched.leader, answer.endpoints)
                self._troubled(course, Code(fetched.error), now)
            elif fetched.diverging:
                course.end_with(
                    How.OUT_OF_RANGE,
                    f"the source was truncated: its epoch {fetched.diverging.epoch} ends at offset"
                    f" {fetched.diverging.end_offset}, before the position {offset}",
                )
            else:
                self._take_in(course, fetched, answer)

    def _take_in(self, course: Course, fetched: FetchedPartition, answer: FetchAnswer) -> None:
        course.reading.end()
        course.end = fetched.last_stable_offset if self.read_committed else fetched.high_watermark
        replica = fetched.preferred_read_replica
        if replica >= 0 and replica != course.read_replica:
            course.read_replica = replica
            self.look_now()
        if not fetched.records:
            return
        before = course.partition.fetched
        refusal = course.sorter.sort(
            course.partition, answer.frame, fetched.records, fetched.aborted
        )
        if refusal:
            course.finish_with(How.REFUSED, refusal.why)
        if course.partition.fetched > before:
            self.arrived(course, len(fetched.records))

    def _troubled(self, course: Course, code: Code, now: float) -> None:
        source = course.partition.lease.source
        course.read_replica = None
        self.look_now()
        match code.action:
            case Action.OFFSET:
                course.finish_with(
                    How.OUT_OF_RANGE,
                    f"the source's log does not hold offset {course.partition.fetched}",
                )
            case Action.TOPIC_GONE:
                course.finish_with(
                    How.SOURCE_GONE, f"the source topic {source.topic} is gone: {code}"
                )
            case Action.NOT_AUTHORIZED:
                course.finish_with(
                    How.NOT_AUTHORIZED,
                    f"the source refuses to let {source.topic} be read: {code};"
                    " grant Read on the topic",
                )
            case _:
                course.reading.begin(f"source: {code}", now)
                self.side.look_again(source.topic)


def _limit(size: int, partitions: int) -> int:
    """How much of one partition an answer may hold, if so many share it.

    A power of two: a limit that hardly ever changes need not be told to a session.
    """
    share = size // partitions
    return max(1 << max(share.bit_length() - 1, 0), PARTITION_BYTES)
