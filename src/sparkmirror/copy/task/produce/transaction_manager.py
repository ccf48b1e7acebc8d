"""Exactly-once delivery in a task: when a transaction is committed, and what counts afterwards.

A transaction covers every partition of the task. It closes when it is due: the commit interval has
passed, or a partition whose lease ends waits for it. It is committed when the outcome of every
batch in it is known. Until the commit the task reports neither positions nor runs of it. A batch
that cannot be sent now and is certainly not on the target waits for the next transaction, so that
one partition does not delay the others. A batch whose outcome stays unknown fails the transactional
producer, and the driver continues at the committed offsets.

Belongs to the task's thread; commits run in its background.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Protocol, TypeVar

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.ledger import LedgerEntry, entry_for_lease
from sparkmirror.copy.task.copy_counter import CopyCounter
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.produce.transaction_state import Transaction, TransactionPhase
from sparkmirror.errors import MirrorError, RequestRefused
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch

RESOLVE_TIMEOUT_S = 10.0
"""How long a closing transaction waits for the outcome of sent batches."""
ADD_RETRY_S = 1.0
"""How long a partition that cannot be added is left out, so that the others can be added."""

T = TypeVar("T")


class TransactionRequests(Protocol):
    """The requests of one transactional producer (`transaction_committer`). Every method blocks."""

    def add_partitions_to_transaction(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Add partitions to the transaction."""
        ...

    def commit(self, entries: Mapping[TopicPartition, LedgerEntry]) -> ProducerIdAndEpoch:
        """Write the source offsets and commit."""
        ...

    def abort(self) -> ProducerIdAndEpoch:
        """End a transaction without batches."""
        ...


class BackgroundExecutor(Protocol):
    """Runs blocking work in another thread (`event_loop`)."""

    def run_in_executor(
        self,
        work: Callable[[], T],
        on_result: Callable[[T], None],
        on_error: Callable[[MirrorError], None],
    ) -> None:
        """Run the work, then call back in the caller's thread."""
        ...


class TransactionManager:
    """Commits what a task copies, transaction after transaction."""

    def __init__(
        self,
        loop: BackgroundExecutor,
        transaction: Transaction,
        committer: TransactionRequests,
        counter: CopyCounter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Call `counter` for every batch that was committed."""
        self.transaction = transaction
        self._loop = loop
        self._committer = committer
        self._counter = counter
        self._clock = clock
        self._uncommitted: list[tuple[LeasedPartition, PendingBatch, list[OffsetRun]]] = []
        self._commit_at = 0.0
        self._closing_since = 0.0
        self._is_adding = False
        self._excluded_until: dict[TopicPartition, float] = {}

    @property
    def failure(self) -> tuple[LeaseEndReason, str] | None:
        """Why the transactional producer failed; None if it did not."""
        return self.transaction.failure

    def count(self, partition: LeasedPartition, batch: PendingBatch, runs: list[OffsetRun]) -> None:
        """Keep an acknowledged batch until the commit, then count it."""
        batch.discard_bytes()
        self._uncommitted.append((partition, batch, runs))

    def poll(self, partitions: Collection[LeasedPartition], now: float) -> None:
        """Add partitions, close or commit the transaction, as far as it is time."""
        match self.transaction.phase:
            case TransactionPhase.OPEN:
                self._add_partitions(now)
                if self._is_due(partitions, now):
                    self.transaction.phase, self._closing_since = TransactionPhase.CLOSING, now
                    self._try_commit(partitions, now)
            case TransactionPhase.CLOSING:
                self._add_partitions(now)
                self._try_commit(partitions, now)

    def wait_s(self, now: float) -> float:
        """Return how long only an event can change anything."""
        is_waiting = self.transaction.phase is TransactionPhase.OPEN and now < self._commit_at
        return self._commit_at - now if is_waiting else float("inf")

    def is_resolved(self, partition: LeasedPartition) -> bool:
        """Whether the lease may be returned: all of it is committed, or nothing will be."""
        return self.failure is not None or partition.queue.is_committed

    # -- closing and committing ------------------------------------------------------------------

    def _is_due(self, partitions: Collection[LeasedPartition], now: float) -> bool:
        if now >= self._commit_at:
            return any(not p.queue.is_committed for p in partitions)
        return any(
            partition.is_ending and not partition.queue.is_committed for partition in partitions
        )

    def _try_commit(self, partitions: Collection[LeasedPartition], now: float) -> None:
        if self._is_adding:
            return
        unresolved = [partition for partition in partitions if not self._resolve(partition)]
        if self.failure or (unresolved and now - self._closing_since <= RESOLVE_TIMEOUT_S):
            return
        if unresolved:
            reason = unresolved[0].send_backoff.reason or "no response"
            self.transaction.fail(
                LeaseEndReason.AMBIGUOUS,
                f"{len(unresolved)} partitions delay their transaction: {reason}",
            )
            return
        self._commit(partitions)

    def _resolve(self, partition: LeasedPartition) -> bool:
        """Return whether the outcome of every batch with a sequence is known.

        Resets the batches that are certainly not on the target.
        """
        queue = partition.queue
        if queue.has_open_requests:
            return False
        if not queue.has_sequenced_batches:
            return True
        if queue.is_unambiguous:
            queue.reset_unappended()
            return True
        if not partition.can_send:
            self.transaction.fail(
                LeaseEndReason.AMBIGUOUS, f"{partition.key}: {partition.end_message}"
            )
        return False

    def _commit(self, partitions: Collection[LeasedPartition]) -> None:
        advanced = {
            partition: partition.queue.acknowledged_lease.with_source_epoch(
                partition.converter.leader_epoch
            )
            for partition in partitions
            if not partition.queue.is_committed
        }
        entries = {
            lease.source: entry_for_lease(lease, is_open=False) for lease in advanced.values()
        }
        self.transaction.phase = TransactionPhase.COMMITTING
        work = partial(self._committer.commit, entries) if entries else self._committer.abort
        self._loop.run_in_executor(work, partial(self._on_committed, advanced), self._on_failed)

    def _on_committed(
        self, advanced: dict[LeasedPartition, Lease], identity: ProducerIdAndEpoch
    ) -> None:
        if self.failure:
            return
        for partition, lease in advanced.items():
            partition.queue.on_committed(lease)
            partition.mark_changed()
        for partition, batch, runs in self._uncommitted:
            self._counter.count(partition, batch, runs)
        self._uncommitted.clear()
        self.transaction.on_ended(identity)
        self._commit_at = self._clock() + self.transaction.transactional_producer.commit_interval_s

    def _on_failed(self, error: MirrorError) -> None:
        is_fenced = (
            isinstance(error, RequestRefused) and ErrorCode(error.code).action is ErrorAction.FENCED
        )
        reason = LeaseEndReason.FENCED if is_fenced else LeaseEndReason.AMBIGUOUS
        self.transaction.fail(reason, f"the transaction was not committed: {error}")

    # -- adding partitions, before transaction.version 2 -----------------------------------------

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
