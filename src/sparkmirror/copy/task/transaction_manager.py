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

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.ledger import LedgerEntry, entry_for_lease
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.copy.task.transaction import Transaction, TransactionPhase
from sparkmirror.errors import MirrorError, RequestRefused
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch

RESOLVE_TIMEOUT_S = 10.0
"""How long a transaction that is due waits for the fate of what was sent."""
ADD_RETRY_S = 1.0
"""How long a partition that cannot be added is left out, so that the others can be."""

T = TypeVar("T")


class TransactionCommitter(Protocol):
    """What ends transactions (`committer`); blocks."""

    def add_partitions_to_transaction(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Add partitions to the transaction."""
        ...

    def commit(self, entries: Mapping[TopicPartition, LedgerEntry]) -> ProducerIdAndEpoch:
        """Write where source partitions stand, and end."""
        ...

    def abort(self) -> ProducerIdAndEpoch:
        """End a transaction in which there is nothing."""
        ...


class BackgroundExecutor(Protocol):
    """What does blocking work elsewhere (`loop`)."""

    def run_in_executor(
        self,
        work: Callable[[], T],
        then: Callable[[T], None],
        failed: Callable[[MirrorError], None],
    ) -> None:
        """Go on with the outcome."""
        ...


CountCopied = Callable[[LeasedPartition, PendingBatch, list[OffsetRun]], None]


class TransactionManager:
    """Commits what a task copies, again and again, until its term ends."""

    def __init__(
        self,
        loop: BackgroundExecutor,
        transaction: Transaction,
        committer: TransactionCommitter,
        count: CountCopied,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let `count` be told every parcel that has been committed."""
        self.transaction = transaction
        self._loop = loop
        self._committer = committer
        self._on_copied = count
        self._clock = clock
        self._uncommitted: list[tuple[LeasedPartition, PendingBatch, list[OffsetRun]]] = []
        self._commit_at = 0.0
        self._closing_since = 0.0
        self._is_adding = False
        self._excluded_until: dict[TopicPartition, float] = {}

    @property
    def failure(self) -> tuple[LeaseEndReason, str] | None:
        """Why the term is over, if it is."""
        return self.transaction.failure

    def on_acknowledged(
        self, course: LeasedPartition, parcel: PendingBatch, runs: list[OffsetRun]
    ) -> None:
        """A parcel is on the target; whether it counts the commit will tell."""
        parcel.discard_bytes()
        self._uncommitted.append((course, parcel, runs))

    def poll(self, courses: Collection[LeasedPartition], now: float) -> None:
        """Add, close or commit, as it is time to."""
        match self.transaction.phase:
            case TransactionPhase.OPEN:
                self._add_partitions(now)
                if self._is_due(courses, now):
                    self.transaction.phase, self._closing_since = TransactionPhase.CLOSING, now
                    self._try_commit(courses, now)
            case TransactionPhase.CLOSING:
                self._try_commit(courses, now)

    def wait_s(self, now: float) -> float:
        """How long nothing but an event can change anything."""
        is_waiting = self.transaction.phase is TransactionPhase.OPEN and now < self._commit_at
        return self._commit_at - now if is_waiting else float("inf")

    def is_resolved(self, course: LeasedPartition) -> bool:
        """Whether a partition may be given back: all of it is committed, or nothing will be."""
        return self.failure is not None or course.queue.is_committed

    # -- closing and committing ------------------------------------------------------------------

    def _is_due(self, courses: Collection[LeasedPartition], now: float) -> bool:
        if now >= self._commit_at:
            return any(not course.queue.is_committed for course in courses)
        return any(course.is_ending and not course.queue.is_committed for course in courses)

    def _try_commit(self, courses: Collection[LeasedPartition], now: float) -> None:
        if self._is_adding:
            return
        unsettled = [course for course in courses if not self._resolve(course)]
        if self.failure or (unsettled and now - self._closing_since <= RESOLVE_TIMEOUT_S):
            return
        if unsettled:
            why = unsettled[0].send_backoff.reason or "no answer"
            self.transaction.fail(
                LeaseEndReason.AMBIGUOUS,
                f"{len(unsettled)} partitions keep their transaction waiting: {why}",
            )
            return
        self._commit(courses)

    def _resolve(self, course: LeasedPartition) -> bool:
        """Whether the fate of everything sealed is known; what is not on the target is unsealed."""
        queue = course.queue
        if queue.open_requests:
            return False
        if not queue.has_sequenced_batches:
            return True
        if queue.is_unambiguous:
            queue.reset_unappended()
            return True
        if not course.can_send:
            self.transaction.fail(LeaseEndReason.AMBIGUOUS, f"{course.key}: {course.end_message}")
        return False

    def _commit(self, courses: Collection[LeasedPartition]) -> None:
        moved = {
            course: course.queue.acknowledged_lease.with_source_epoch(course.converter.leader_epoch)
            for course in courses
            if not course.queue.is_committed
        }
        entries = {lease.source: entry_for_lease(lease, is_open=False) for lease in moved.values()}
        self.transaction.phase = TransactionPhase.COMMITTING
        work = partial(self._committer.commit, entries) if entries else self._committer.abort
        self._loop.run_in_executor(work, partial(self._on_committed, moved), self._on_failed)

    def _on_committed(
        self, moved: dict[LeasedPartition, Lease], identity: ProducerIdAndEpoch
    ) -> None:
        if self.failure:
            return
        for course, lease in moved.items():
            course.queue.on_committed(lease)
        for course, parcel, runs in self._uncommitted:
            self._on_copied(course, parcel, runs)
        self._uncommitted.clear()
        self.transaction.on_ended(identity)
        self._commit_at = self._clock() + self.transaction.transactional_producer.commit_interval_s

    def _on_failed(self, error: MirrorError) -> None:
        fenced = (
            isinstance(error, RequestRefused) and ErrorCode(error.code).action is ErrorAction.FENCED
        )
        how = LeaseEndReason.FENCED if fenced else LeaseEndReason.AMBIGUOUS
        self.transaction.fail(how, f"the transaction was not committed: {error}")

    # -- adding partitions, where batches do not do that by themselves -----------------------------

    def _add_partitions(self, now: float) -> None:
        if not self.transaction.partitions_to_add or self._is_adding:
            return
        wanted = {
            p for p in self.transaction.partitions_to_add if self._excluded_until.get(p, 0.0) <= now
        }
        if not wanted:
            return
        self._is_adding = True
        self._loop.run_in_executor(
            partial(self._committer.add_partitions_to_transaction, wanted),
            self._on_partitions_added,
            self._on_add_failed,
        )

    def _on_partitions_added(self, codes: dict[TopicPartition, ErrorCode]) -> None:
        self._is_adding = False
        actions = {partition: code.action for partition, code in codes.items()}
        if ErrorAction.FENCED in actions.values():
            self.transaction.fail(
                LeaseEndReason.FENCED, "another owner has taken over the transactional id"
            )
        elif set(actions.values()) == {ErrorAction.ADVANCE}:
            self.transaction.on_partitions_added(set(codes))
        else:
            until = self._clock() + ADD_RETRY_S
            bad = {p for p, action in actions.items() if action is not ErrorAction.NOT_ATTEMPTED}
            self._excluded_until |= dict.fromkeys(bad or actions, until)

    def _on_add_failed(self, error: MirrorError) -> None:
        self._is_adding = False
        self._on_failed(error)
