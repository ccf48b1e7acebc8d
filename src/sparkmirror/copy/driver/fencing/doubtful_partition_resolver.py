"""Resolves doubtful partitions: those whose last lease did not end cleanly.

A doubtful partition is fenced and reconciled (`takeover`, `transactional_takeover`), and waits for
its next lease then. One that another conductor of the connector has taken is given up.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sparkmirror.copy.driver.fencing.takeover import Takeover
from sparkmirror.copy.driver.fencing.transactional_takeover import TransactionalTakeover
from sparkmirror.copy.driver.job_partitions import JobPartitions
from sparkmirror.copy.driver.lease_grants import LeaseGranter
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.lost_attempt_receipts import LostAttemptReceipts
from sparkmirror.copy.driver.sharing.worker_group_membership import GroupMembership
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition


@dataclass(slots=True, kw_only=True)
class DoubtfulPartitionResolver:
    """The doubtful partitions of a job. Blocks; belongs to the conductor's thread."""

    job_partitions: JobPartitions
    takeover: Takeover
    transactional_takeover: TransactionalTakeover
    ledger_cache: LedgerCache
    lease_granter: LeaseGranter
    pending_receipts: LostAttemptReceipts
    membership: GroupMembership
    lock: threading.Lock

    def resolve(self, now: float, unsettled: Collection[TrackedPartition]) -> None:
        """Resolve those that this conductor may take. Raises MirrorError.

        `unsettled` has all partitions of the job that are doubtful.
        """
        if self.job_partitions.job.is_shared:
            self._give_up_lost(unsettled)
        before = [
            p
            for p in unsettled
            if p.state is LeaseState.DOUBTFUL and self.membership.may_take(p.renewals_needed)
        ]
        if any(p.is_transaction_doubtful for p in before):
            self.transactional_takeover.resolve(self.job_partitions.tracked.values())
        doubtful = [
            p for p in before if p.state is LeaseState.DOUBTFUL and not p.is_transaction_doubtful
        ]
        if doubtful:
            self._take_over(doubtful, now)
        with self.lock:
            for tracked in before:
                if tracked.last_owner and tracked.state is LeaseState.WAITING:
                    # What the last owner had appended and not reported.
                    self.pending_receipts.add(tracked.last_owner, tracked)

    def _take_over(self, doubtful: list[TrackedPartition], now: float) -> None:
        """Fence and reconcile, and write the entries of those that wait for their next lease."""
        self.takeover.resolve(doubtful, self.lease_granter.target_limits(doubtful), now)
        resolved = [p for p in doubtful if p.state is LeaseState.WAITING]
        if self.job_partitions.job.is_exactly_once:
            with self.lock:
                for tracked in resolved:
                    tracked.make_transactional()
        # An open entry is the claim that the next grant needs, so that the grant writes nothing.
        self.ledger_cache.save(resolved, is_open=True)
        with self.lock:
            for tracked in resolved:
                # Without a grant the next flush closes the entry: no task may append.
                tracked.is_dirty = tracked.is_dirty or not tracked.is_transactional

    def _give_up_lost(self, unsettled: Iterable[TrackedPartition]) -> None:
        """Find a new resume point for doubtful partitions that another conductor has taken."""
        doubtful = [
            p for p in unsettled if p.state is LeaseState.DOUBTFUL and not p.is_transactional
        ]
        if doubtful:
            self.ledger_cache.reload()
            with self.lock:
                for tracked in doubtful:
                    if self.ledger_cache.is_lost(tracked):
                        tracked.give_up(self.membership.renewals_after_fence())
