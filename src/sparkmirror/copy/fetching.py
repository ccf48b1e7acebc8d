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
    Position,
    fetch_request,
    fetch_version,
    takes_ids,
)

PARTITION_BYTES = 1 << 20
SMALLEST_ANSWER = 1 << 20
LARGEST_ANSWER = 32 << 20
ANSWERS_AHEAD = 4
"""How many answers may lie in memory before the next fetch waits for acknowledgements."""
LONG_POLL_MS = 500
SHORT_POLL_MS = 5
ANSWER_WITHIN_S = 10.0

Key = tuple[object, int]


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
class Fetching:
    """Keeps every source broker busy, within the budget."""

    side: Side
    read_committed: bool
    rack: str
    arrived: Callable[[Course, int], None]
    """Told when a partition has so many new bytes to send."""
    _appetites: dict[int, _Appetite] = field(default_factory=dict)

    def pump(self, courses: Iterable[Course], now: float, throttle: Throttle) -> None:
        """Ask every idle source broker for what its partitions have room for."""
        if not throttle.allows(now) or not self.side.budget.free:
            return
        by_node: dict[int, list[Course]] = {}
        for course in courses:
            if course.is_leaving:
                continue
            node = course.read_replica
            if node is None:
                node = self.side.node_of(course.partition.lease.source)
            if node is not None:
                by_node.setdefault(node, []).append(course)
        for node, there in by_node.items():
            connection = self.side.connection(node)
            if connection and not connection.in_flight and now >= connection.muted_until:
                self._fetch(node, connection, there, now, throttle.most)

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
        limits = FetchLimits(
            max_wait_ms=LONG_POLL_MS if len(hungry) == len(there) else SHORT_POLL_MS,
            max_bytes=size,
            read_committed=self.read_committed,
            rack=self.rack,
        )
        by_id = takes_ids(connection.versions) and all(
            course.partition.lease.source_topic_id for course in hungry
        )
        asked: dict[Key, tuple[Course, int]] = {}
        positions = []
        for course in hungry:
            lease, offset = course.partition.lease, course.partition.fetched
            topic = self.side.topic_key(lease.source.topic, lease.source_topic_id, by_id=by_id)
            asked[topic, lease.source.partition] = course, offset
            positions.append(
                Position(
                    topic,
                    lease.source.partition,
                    offset,
                    max(size // len(hungry), PARTITION_BYTES),
                    last_fetched_epoch=course.sorter.leader_epoch,
                )
            )
        request = fetch_request(fetch_version(connection.versions, by_id=by_id), limits, positions)

        def heard(answer: FetchAnswer) -> None:
            took_s = time.monotonic() - now
            appetite.learn(answer.frame.size, took_s)
            self._sort_out(asked, answer, time.monotonic())

        def lost(error: ClusterError) -> None:
            for course, _ in asked.values():
                course.reading.begin(f"source: {error}", time.monotonic())
                course.read_replica = None

        self.side.loop.guard(
            connection,
            lambda: connection.send(request, then=heard, lost=lost, deadline=now + ANSWER_WITHIN_S),
        )

    def _sort_out(
        self, asked: dict[Key, tuple[Course, int]], answer: FetchAnswer, now: float
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
