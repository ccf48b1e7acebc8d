"""The source side of a task: one fetch at a time on each source broker, while there is room.

A partition is asked for unless it waits, leaves, or has enough queued already; all partitions
together stay within the memory budget. A fetch waits at the broker for news only if every partition
of that broker takes part: otherwise it would keep the others waiting. How much one fetch may bring
follows from the length of the way to the source.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sparkmirror.copy.course import Course
from sparkmirror.copy.messages import How
from sparkmirror.copy.side import Side
from sparkmirror.copy.throttle import Throttle
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
from sparkmirror.wire.fetch_session import LOST, FetchSession

PARTITION_BYTES = 1 << 20
SMALLEST_ANSWER = 4 << 20
LARGEST_ANSWER = 32 << 20
ANSWERS_AHEAD = 4
"""How many answers may lie in memory before the next fetch waits for acknowledgements."""
LONG_POLL_MS = 500
SHORT_POLL_MS = 5
ANSWER_WITHIN_S = 10.0
LOOK_EVERY_S = 0.1
"""How often to look where partitions are led while every broker is busy."""


@dataclass(slots=True)
class _Appetite:
    """How much to ask one broker for at once: twice what is under way on the wire anyway.

    The quickest answer so far is taken for the round trip. On a short way that keeps answers small
    enough for the processor's cache; on a long one they grow until the way is full.
    """

    bytes: int = SMALLEST_ANSWER
    _round_trip_s: float = float("inf")
    _turn: int = 0

    def next_turn(self) -> int:
        """Count the fetches from this broker.

        The partition that is asked for first may fill the whole answer, so each broker's partitions
        take turns. Counted together with other brokers' fetches, some would never have theirs.
        """
        self._turn += 1
        return self._turn

    def learn(self, received: int, took_s: float) -> None:
        """Take in how long an answer took."""
        self._round_trip_s = min(self._round_trip_s, took_s)
        if received >= self.bytes // 2:
            under_way = received / max(took_s, 1e-6) * self._round_trip_s
            self.bytes = int(min(max(2 * under_way, SMALLEST_ANSWER), LARGEST_ANSWER))


@dataclass(slots=True)
class _Visit:
    """A fetch session, and what it holds for."""

    connection: Connection
    by_id: bool
    session: FetchSession = field(default_factory=FetchSession)


@dataclass(slots=True)
class Fetching:
    """Keeps every source broker busy, within the budget."""

    side: Side
    read_committed: bool
    rack: str
    arrived: Callable[[Course, int], None]
    """Told when a partition has so many new bytes to send."""
    _appetites: dict[int, _Appetite] = field(default_factory=dict)
    _sessions: dict[int, _Visit] = field(default_factory=dict)
    _nodes: tuple[int, ...] = ()
    _look_at: float = 0.0

    def look_now(self) -> None:
        """There are other partitions than before, or others lead them."""
        self._look_at = 0.0

    def pump(self, courses: Iterable[Course], now: float, throttle: Throttle) -> None:
        """Ask every idle source broker for what its partitions have room for."""
        if not throttle.allows(now) or not self.side.budget.free:
            return
        if now < self._look_at and not any(self._is_idle(node) for node in self._nodes):
            return
        by_node: dict[int, list[Course]] = {}
        for course in courses:
            if course.is_leaving:
                continue
            if course.read_replica is not None and self.side.is_shut(course.read_replica):
                course.read_replica = None
            node = course.read_replica
            if node is None:
                node = self.side.node_of(course.partition.lease.source)
            if node is not None:
                by_node.setdefault(node, []).append(course)
        self._nodes, self._look_at = tuple(by_node), now + LOOK_EVERY_S
        for node, there in by_node.items():
            connection = self.side.connection(node)
            if connection and not connection.in_flight and now >= connection.muted_until:
                self._fetch(node, connection, there, now, throttle.most)

    def _is_idle(self, node: int) -> bool:
        connection = self.side.connection(node)
        return not connection or not connection.in_flight

    def _fetch(
        self,
        node: int,
        connection: Connection,
        there: list[Course],
        now: float,
        most: int | None,
    ) -> None:
        appetite = self._appetites.setdefault(node, _Appetite())
        if self.side.budget.used >= ANSWERS_AHEAD * appetite.bytes:
            return
        room = ANSWERS_AHEAD * appetite.bytes // 2
        hungry = [c for c in there if now >= c.reading.until and c.partition.queued_bytes < room]
        if not hungry:
            return
        first = appetite.next_turn() % len(hungry)
        hungry = hungry[first:] + hungry[:first]
        size = max(min(appetite.bytes, self.side.budget.free), SMALLEST_ANSWER // 4)
        size = min(size, most or size)
        by_id = takes_ids(connection.versions) and all(
            course.partition.lease.source_topic_id for course in hungry
        )
        each = max(_power_of_two(size // len(hungry)), PARTITION_BYTES)
        asked: dict[Place, tuple[Course, int]] = {}
        wanted: dict[Place, Position] = {}
        for course in hungry:
            lease, offset = course.partition.lease, course.partition.fetched
            topic = self.side.topic_key(lease.source.topic, lease.source_topic_id, by_id=by_id)
            place = topic, lease.source.partition
            asked[place] = course, offset
            wanted[place] = Position(
                *place, offset, each, last_fetched_epoch=course.sorter.leader_epoch
            )
        session = self._session(node, connection, by_id=by_id)
        key = session.key
        positions, forgotten = session.next(wanted)
        limits = FetchLimits(
            max_wait_ms=LONG_POLL_MS if len(hungry) == len(there) else SHORT_POLL_MS,
            max_bytes=size,
            read_committed=self.read_committed,
            rack=self.rack,
            session=key,
            forgotten=forgotten,
        )
        request = fetch_request(fetch_version(connection.versions, by_id=by_id), limits, positions)

        def heard(answer: FetchAnswer) -> None:
            took_s = time.monotonic() - now
            appetite.learn(answer.frame.size, took_s)
            if answer.error in LOST:
                session.reset()  # named in full, the same is asked again at once
                return
            session.answered(answer.session_id)
            self._sort_out(asked, answer, time.monotonic())

        def lost(error: ClusterError) -> None:
            session.reset()
            for course, _ in asked.values():
                course.reading.begin(f"source: {error}", time.monotonic())
                course.read_replica = None

        self.side.loop.guard(
            connection,
            lambda: connection.send(request, then=heard, lost=lost, deadline=now + ANSWER_WITHIN_S),
        )

    def _session(self, node: int, connection: Connection, *, by_id: bool) -> FetchSession:
        """The session with a broker; another connection, or other names of topics, begin anew."""
        visit = self._sessions.get(node)
        if visit is None or visit.connection is not connection or visit.by_id is not by_id:
            visit = self._sessions[node] = _Visit(connection, by_id)
        return visit.session

    def _sort_out(
        self, asked: dict[Place, tuple[Course, int]], answer: FetchAnswer, now: float
    ) -> None:
        if answer.error:
            for course, _ in asked.values():
                self._troubled(course, Code(answer.error), now)
            return
        for fetched in answer.partitions:
            course, offset = asked[fetched.topic, fetched.partition]
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
        if replica >= 0:
            course.read_replica = replica
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


def _power_of_two(number: int) -> int:
    """The next one below: a limit that hardly ever changes need not be told to a session."""
    return 1 << max(number.bit_length() - 1, 0)
