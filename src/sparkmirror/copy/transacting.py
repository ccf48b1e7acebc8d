"""Exactly-once inside a task: when a transaction closes, what it commits, what counts afterwards.

A transaction covers every partition of the task. It is closed when it is due (so long after the
last end, or when a partition that leaves waits for it), committed when the fate of every batch in
it is known, and until then nothing of it is reported: neither positions nor runs. What cannot be
sent for now and is certainly not on the target waits for the next transaction, so that one
partition in trouble does not keep the others. What may be on the target and is not known to be
fails the term, and the driver decides by what was committed.

Belongs to the task's loop; commits run in its background.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Protocol, TypeVar

from sparkmirror.copy.course import Course
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.ledger import Entry, entry_of
from sparkmirror.copy.messages import How
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.transaction import Phase, Transaction
from sparkmirror.errors import MirrorError, RequestRefused
from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Action, Code
from sparkmirror.wire.producers import ProducerIdentity

SETTLED_WITHIN_S = 10.0
"""How long a transaction that is due waits for the fate of what was sent."""
BARRED_S = 1.0
"""How long a partition that cannot be added is left out, so that the others can be."""

T = TypeVar("T")


class Commits(Protocol):
    """What ends transactions (`committer`); blocks."""

    def join(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Code]:
        """Add partitions to the transaction."""
        ...

    def commit(self, entries: Mapping[TopicPartition, Entry]) -> ProducerIdentity:
        """Write where source partitions stand, and end."""
        ...

    def abort(self) -> ProducerIdentity:
        """End a transaction in which there is nothing."""
        ...


class Background(Protocol):
    """What does blocking work elsewhere (`loop`)."""

    def in_background(
        self,
        work: Callable[[], T],
        then: Callable[[T], None],
        failed: Callable[[MirrorError], None],
    ) -> None:
        """Go on with the outcome."""
        ...


Count = Callable[[Course, Parcel, list[Run]], None]


class Transacting:
    """Commits what a task copies, again and again, until its term ends."""

    def __init__(
        self,
        loop: Background,
        transaction: Transaction,
        committer: Commits,
        count: Count,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let `count` be told every parcel that has been committed."""
        self.transaction = transaction
        self._loop = loop
        self._committer = committer
        self._count = count
        self._clock = clock
        self._landed: list[tuple[Course, Parcel, list[Run]]] = []
        self._due_at = 0.0
        self._closing_since = 0.0
        self._is_joining = False
        self._barred: dict[TopicPartition, float] = {}

    @property
    def failure(self) -> tuple[How, str] | None:
        """Why the term is over, if it is."""
        return self.transaction.failure

    def landed(self, course: Course, parcel: Parcel, runs: list[Run]) -> None:
        """A parcel is on the target; whether it counts the commit will tell."""
        parcel.forget_bytes()
        self._landed.append((course, parcel, runs))

    def pump(self, courses: Collection[Course], now: float) -> None:
        """Add, close or commit, as it is time to."""
        match self.transaction.phase:
            case Phase.OPEN:
                self._join(now)
                if self._is_due(courses, now):
                    self.transaction.phase, self._closing_since = Phase.CLOSING, now
                    self._close(courses, now)
            case Phase.CLOSING:
                self._close(courses, now)

    def wait_s(self, now: float) -> float:
        """How long nothing but an event can change anything."""
        is_waiting = self.transaction.phase is Phase.OPEN and now < self._due_at
        return self._due_at - now if is_waiting else float("inf")

    def has_settled(self, course: Course) -> bool:
        """Whether a partition may be given back: all of it is committed, or nothing will be."""
        return self.failure is not None or course.partition.is_committed

    # -- closing and committing ------------------------------------------------------------------

    def _is_due(self, courses: Collection[Course], now: float) -> bool:
        if now >= self._due_at:
            return any(not course.partition.is_committed for course in courses)
        return any(course.is_leaving and not course.partition.is_committed for course in courses)

    def _close(self, courses: Collection[Course], now: float) -> None:
        if self._is_joining:
            return
        unsettled = [course for course in courses if not self._settle(course)]
        if self.failure or (unsettled and now - self._closing_since <= SETTLED_WITHIN_S):
            return
        if unsettled:
            why = unsettled[0].writing.why or "no answer"
            self.transaction.fail(
                How.AMBIGUOUS, f"{len(unsettled)} partitions keep their transaction waiting: {why}"
            )
            return
        self._commit(courses)

    def _settle(self, course: Course) -> bool:
        """Whether the fate of everything sealed is known; what is not on the target is unsealed."""
        queue = course.partition
        if queue.requests:
            return False
        if not queue.has_sealed:
            return True
        if queue.is_certain:
            queue.unseal()
            return True
        if not course.is_sending:
            self.transaction.fail(How.AMBIGUOUS, f"{course.key}: {course.why}")
        return False

    def _commit(self, courses: Collection[Course]) -> None:
        moved = {
            course: course.partition.further.of_epoch(course.sorter.leader_epoch)
            for course in courses
            if not course.partition.is_committed
        }
        entries = {lease.source: entry_of(lease, is_open=False) for lease in moved.values()}
        self.transaction.phase = Phase.COMMITTING
        work = partial(self._committer.commit, entries) if entries else self._committer.abort
        self._loop.in_background(work, partial(self._committed, moved), self._failed)

    def _committed(self, moved: dict[Course, Lease], identity: ProducerIdentity) -> None:
        if self.failure:
            return
        for course, lease in moved.items():
            course.partition.committed(lease)
        for course, parcel, runs in self._landed:
            self._count(course, parcel, runs)
        self._landed.clear()
        self.transaction.ended(identity)
        self._due_at = self._clock() + self.transaction.term.commit_every_s

    def _failed(self, error: MirrorError) -> None:
        fenced = isinstance(error, RequestRefused) and Code(error.code).action is Action.FENCED
        how = How.FENCED if fenced else How.AMBIGUOUS
        self.transaction.fail(how, f"the transaction was not committed: {error}")

    # -- adding partitions, where batches do not do that by themselves -----------------------------

    def _join(self, now: float) -> None:
        if not self.transaction.wanted or self._is_joining:
            return
        wanted = {p for p in self.transaction.wanted if self._barred.get(p, 0.0) <= now}
        if not wanted:
            return
        self._is_joining = True
        self._loop.in_background(
            partial(self._committer.join, wanted), self._heard_join, self._failed_join
        )

    def _heard_join(self, codes: dict[TopicPartition, Code]) -> None:
        self._is_joining = False
        actions = {partition: code.action for partition, code in codes.items()}
        if Action.FENCED in actions.values():
            self.transaction.fail(How.FENCED, "another owner has taken over the transactional id")
        elif set(actions.values()) == {Action.ADVANCE}:
            self.transaction.joined(set(codes))
        else:
            until = self._clock() + BARRED_S
            bad = {p for p, action in actions.items() if action is not Action.NOT_ATTEMPTED}
            self._barred |= dict.fromkeys(bad or actions, until)

    def _failed_join(self, error: MirrorError) -> None:
        self._is_joining = False
        self._failed(error)
