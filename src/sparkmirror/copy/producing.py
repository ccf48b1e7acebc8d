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

from sparkmirror.copy.course import Course
from sparkmirror.copy.messages import How
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.side import Side
from sparkmirror.copy.transaction import Transaction
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.runs import Run
from sparkmirror.wire.codes import Action, Code
from sparkmirror.wire.connection import Connection
from sparkmirror.wire.produce import (
    Acknowledgement,
    OutgoingBatch,
    ProduceAnswer,
    produce_request,
    produce_version,
    takes_ids,
)
from sparkmirror.wire.topickey import TopicKey

REQUEST_BYTES = 4 << 20
AT_ONCE = 2
"""Requests under way that keep a broker busy on a short way."""
ENOUGH = 1 << 18
LONG_WAY_S = 0.01
PRODUCE_TIMEOUT_MS = 10_000
ANSWER_WITHIN_S = 15.0
YOUNG_MS = 12 * 3600 * 1000
"""A broker forgets the producer of data older than a day; half of that is safely remembered."""

NOT_APPENDED = frozenset(
    {
        *(Action.BACK_OFF, Action.SEQUENCE, Action.CONTENT, Action.FENCED),
        *(Action.TOPIC_GONE, Action.NOT_AUTHORIZED, Action.COORDINATOR),
    }
)
"""What a broker answers before it has appended anything. Not so a leader that is one no longer: it
may have appended, and its successor may have that."""

Sent = dict[tuple[TopicKey, int], tuple[Course, Parcel]]


@dataclass(slots=True)
class Producing:
    """Keeps every target broker busy with what is ready."""

    side: Side
    in_flight: int
    acknowledged: Callable[[Course, Parcel, list[Run]], None]
    now_ms: Callable[[], int]
    transaction: Transaction | None = None
    _ready: dict[Course, None] = field(default_factory=dict)
    _round_trips: dict[int, float] = field(default_factory=dict)
    """The quickest answer of each broker so far."""

    def has_news(self, course: Course) -> None:
        """Note that a partition may have something to send."""
        self._ready[course] = None

    def forget(self, course: Course) -> None:
        """A partition is given back."""
        self._ready.pop(course, None)

    def pump(self, now: float) -> None:
        """Send what can be sent."""
        by_node: dict[int, list[Course]] = {}
        for course in list(self._ready):
            if not course.partition.ready:
                del self._ready[course]
            elif now >= course.writing.until and not (course.settling or course.unanswered):
                node = self.side.node_of(course.partition.lease.target)
                if node is not None:
                    by_node.setdefault(node, []).append(course)
        for node, courses in by_node.items():
            connection = self.side.connection(node)
            if connection and now >= connection.muted_until:
                while self._may_send(node, connection, courses) and self._send(
                    node, connection, courses, now
                ):
                    pass

    def _may_send(self, node: int, connection: Connection, courses: list[Course]) -> bool:
        """Whether another request pays: a broker works on one at a time, so few large ones do."""
        under_way = connection.in_flight
        if under_way < AT_ONCE:
            return True
        if under_way >= self.in_flight:
            return False
        far = self._round_trips.get(node, 0.0) > LONG_WAY_S
        return far or sum(c.partition.ready[0].size for c in courses if c.partition.ready) >= ENOUGH

    def _send(self, node: int, connection: Connection, courses: list[Course], now: float) -> bool:
        """Send one request with a batch of each partition that has one; say whether any had."""
        if connection.is_closed:
            return False
        parcels: list[tuple[Course, Parcel]] = []
        size = 0
        for course in courses:
            if size >= REQUEST_BYTES:
                break
            parcel = course.partition.next_to_send() if course.is_sending else None
            if parcel:
                parcels.append((course, parcel))
                size += parcel.size
        if not parcels:
            return False
        within = self.transaction
        joins = within is None or within.is_strict
        by_id = (joins and takes_ids(connection.versions)) and all(
            course.partition.lease.target_topic_id for course, _ in parcels
        )
        sent: Sent = {}
        batches = []
        for course, parcel in parcels:
            lease = course.partition.lease
            topic = self.side.topic_key(lease.target.topic, lease.target_topic_id, by_id=by_id)
            sent[topic, lease.target.partition] = course, parcel
            batches.append(OutgoingBatch(topic, lease.target.partition, parcel.buffers))
        request = produce_request(
            produce_version(connection.versions, by_id=by_id, joins=joins),
            batches,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            transactional_id=within.term.transactional_id if within else None,
        )
        self.side.loop.guard(
            connection,
            lambda: connection.send(
                request,
                then=lambda answer: self._heard(node, now, sent, answer),
                lost=lambda error: self._lost(sent, error),
                deadline=now + ANSWER_WITHIN_S,
            ),
        )
        return True

    # -- what became of it ---------------------------------------------------------------------

    def _heard(self, node: int, asked_at: float, sent: Sent, answer: ProduceAnswer) -> None:
        now = time.monotonic()
        self._round_trips[node] = min(self._round_trips.get(node, now), now - asked_at)
        for key, (course, parcel) in sent.items():
            acknowledgement = answer.acknowledgements.get(key)
            if acknowledgement is None:
                course.end_with(How.AMBIGUOUS, "the target left a batch out of its answer")
            elif acknowledgement.error == 0:
                self._landed(course, parcel, acknowledgement.base_offset)
            else:
                target = course.partition.lease.target
                self.side.hear_of(target, acknowledgement.leader, answer.endpoints)
                self._refused(course, parcel, acknowledgement, now)
            course.partition.answered()
            self.has_news(course)

    def _landed(self, course: Course, parcel: Parcel, base_offset: int) -> None:
        if not course.partition.is_oldest(parcel):
            if parcel in course.partition.flying:
                course.end_with(
                    How.AMBIGUOUS,
                    f"the target took the batch for offset {parcel.expected} before an earlier one",
                )
            return
        if not course.partition.lands_at(parcel, base_offset):
            course.end_with(
                How.AMBIGUOUS,
                f"a batch for target offset {parcel.expected} was appended at {base_offset}:"
                " somebody else writes to the remote topic, or it was recreated",
            )
            return
        course.writing.end()
        course.newest_ms = max(course.newest_ms, parcel.newest_ms)
        self.acknowledged(course, parcel, course.partition.acknowledged(parcel))

    def _refused(self, course: Course, parcel: Parcel, said: Acknowledgement, now: float) -> None:
        code = Code(said.error)
        if code.action in NOT_APPENDED:
            course.partition.refused(parcel)
        if self.transaction and _breaks(course, parcel, code):
            how = How.FENCED if code.action is Action.FENCED else How.AMBIGUOUS
            self.transaction.fail(how, f"{course.key}: the target ends the transaction: {code}")
        else:
            self._react(course, parcel, said, now)

    def _react(self, course: Course, parcel: Parcel, said: Acknowledgement, now: float) -> None:
        code = Code(said.error)
        target = course.partition.lease.target
        match code.action:
            case Action.REFRESH:
                course.writing.begin(f"target: {code}", now)
                self._repeat(course)
                self.side.look_again(target.topic)
            case Action.COORDINATOR | Action.BACK_OFF:
                course.writing.begin(f"target: {code}", now)
                course.partition.send_again()
                self.side.look_again(target.topic)
            case Action.AMBIGUOUS:
                self._send_again(course, f"target: {code}", now)
            case Action.SEQUENCE if course.partition.is_oldest(parcel):
                course.settling = True
            case Action.SEQUENCE if not course.settling:
                course.partition.send_again()
            case Action.SEQUENCE:
                pass
            case Action.FENCED:
                course.end_with(How.FENCED, f"another owner has taken over {target}: {code}")
            case Action.TOPIC_GONE:
                course.end_with(How.TARGET_GONE, f"the remote topic {target.topic} is gone: {code}")
            case Action.NOT_AUTHORIZED:
                course.end_with(
                    How.NOT_AUTHORIZED,
                    f"the target refuses to let {target.topic} be written: {code};"
                    " grant Write on the topic",
                )
            case _:
                course.end_with(How.REFUSED, _content(parcel, said, code))

    def _lost(self, sent: Sent, error: ClusterError) -> None:
        now = time.monotonic()
        for course, _ in sent.values():
            self._send_again(course, f"target: {error}", now)
            course.partition.answered()
            self.has_news(course)

    def _send_again(self, course: Course, why: str, now: float) -> None:
        """Repeat what nobody answered for, unless the broker may not recognise it."""
        oldest = min(p.newest_ms for p in course.partition.flying) if course.partition.flying else 0
        is_old = course.partition.flying and oldest < self.now_ms() - YOUNG_MS
        if is_old and self.transaction is None:
            course.end_with(
                How.AMBIGUOUS, f"{why}; the data is too old to be sent twice without looking"
            )
        else:
            course.writing.begin(why, now)
            self._repeat(course)
        self.side.look_again(course.partition.lease.target.topic)

    def _repeat(self, course: Course) -> None:
        """Send again as soon as it is known that nothing can come twice.

        In a transaction it is: the broker remembers its producer until the end.
        """
        if course.partition.flying and self.transaction is None:
            course.unanswered = True
        course.partition.send_again()


def _breaks(course: Course, parcel: Parcel, code: Code) -> bool:
    """Whether a transaction cannot go on after this."""
    if code.action is Action.SEQUENCE:
        return course.is_sending and course.partition.is_oldest(parcel)
    return code.action in (Action.FENCED, Action.TRANSACTION)


def _content(parcel: Parcel, said: Acknowledgement, code: Code) -> str:
    detail = said.message or "; ".join(
        f"record {record.place}: {record.message}" for record in said.refused[:3]
    )
    first, _ = parcel.spans[0]
    last, length = parcel.spans[-1]
    return (
        f"the target refuses source offsets {first} to {last + length - 1}: {code}"
        f"{': ' + detail if detail else ''}"
    )
