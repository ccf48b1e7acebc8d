"""Transactional takeover: a partition whose owner disappeared resumes at the committed offset.

The exactly-once counterpart of `takeover`. Nothing is searched on the target: once the owner's
transactional id is fenced, its open transaction is aborted and it can commit nothing more, so the
offsets topic says where copying resumes. A task has one id for all its partitions, so the id is
fenced only when the task holds no lease any more. Before a partition is granted, a transaction that
may hang in its remote partition is ended (`hanging_transactions`).

If several conductors share the connector, each InitProducerId for a task's id is followed by a read
of the ledger: an entry of another conductor means that the partition is no longer this conductor's.
It takes such a partition as a new one. If another task guards the entry, the conductor fences that
task too, reads the position, and writes the entry under the conductor id of that task.

Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.fencing.takeover import PublishEvent
from sparkmirror.copy.driver.fencing.takeover_decisions import MAX_SINGLE_EVENTS
from sparkmirror.copy.driver.fencing.transactional_id_fencing import TransactionalIdFencing
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.resume.resume_point_decision import truncation_warning
from sparkmirror.copy.driver.sharing.worker_group_membership import GroupMembership
from sparkmirror.copy.driver.task_attempts import TaskAttempt
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.lease import NO_TASK, Lease
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.wire.protocol.error_codes import ErrorCode


@dataclass(slots=True, kw_only=True)
class TransactionalTakeover:
    """Resolves doubtful partitions of a job that copies in transactions."""

    clusters: ClusterQueries
    transactional_ids: TransactionalIdFencing
    ledger_cache: LedgerCache
    publish: PublishEvent
    lock: threading.Lock
    membership: GroupMembership = field(default_factory=lambda: GroupMembership(is_required=False))

    def resolve(self, partitions: Collection[TrackedPartition]) -> None:
        """Fence tasks; partitions of fenced tasks become waiting, at the committed offset."""
        doubtful = [
            tracked
            for tracked in partitions
            if tracked.is_transaction_doubtful
            and tracked.renewals_needed <= self.membership.renewals
        ]
        leasing = {tracked.owner.task for tracked in partitions if tracked.owner}
        unfenced = {tracked.last_task for tracked in doubtful if not self._is_fenced(tracked)}
        for task in unfenced - leasing:
            self.transactional_ids.fence(task)
        fenced = [tracked for tracked in doubtful if self._is_fenced(tracked)]
        if fenced:
            self.ledger_cache.reload()
            with self.lock:
                for tracked in fenced:
                    if self.ledger_cache.is_lost(tracked):
                        tracked.give_up(self.membership.renewals_after_fence())
                    else:
                        self._resume_at_committed(tracked)
            self._publish([tracked for tracked in fenced if not tracked.needs_resume_point])

    def grantable(
        self,
        attempt: TaskAttempt,
        waiting: list[TrackedPartition],
        partitions: Collection[TrackedPartition],
        now: float,
    ) -> list[TrackedPartition]:
        """Return which of its waiting partitions an attempt may get.

        Gives the attempt a transactional producer if it has none. An attempt whose producer was
        fenced gets a new one when it has given back every lease.
        """
        if attempt.transactional_producer is None and any(
            tracked.owner == attempt.hello for tracked in partitions
        ):
            return []
        self._fence_guarding_tasks(waiting)
        clear = self._without_hanging(waiting, now)
        if clear and attempt.transactional_producer is None:
            attempt.transactional_producer = self.transactional_ids.acquire(attempt.hello.task)
            if self.membership.is_required:
                self.ledger_cache.reload()
                with self.lock:
                    for tracked in clear:
                        if self.ledger_cache.is_lost(tracked) and not tracked.needs_resume_point:
                            tracked.give_up(self.membership.renewals_after_fence())
                clear = [p for p in clear if p.renewals_needed <= self.membership.renewals]
        return clear if attempt.transactional_producer else []

    def fence_former_owners(self, waiting: list[TrackedPartition]) -> None:
        """Fence the tasks that copied these partitions in transactions, for an owner that does not.

        They may still run on another worker, and commit records behind the position in the ledger.
        Each entry needs a fence of its own: after the last one another conductor may have had the
        task. Afterwards the ledger has nothing new in transactions about these partitions.
        """
        new = [tracked for tracked in waiting if tracked.needs_resume_point]
        if not self.membership.is_required or not new:
            return
        self.ledger_cache.reload()
        while unfenced := [tracked for tracked in new if self._has_former_owner(tracked)]:
            self.transactional_ids.fence_tasks(
                {self.ledger_cache.transactional_task(tracked) for tracked in unfenced}
            )
            for tracked in unfenced:
                tracked.fenced_entry = self.ledger_cache.entries[tracked.source]
            self.ledger_cache.reload()

    def _has_former_owner(self, tracked: TrackedPartition) -> bool:
        """Whether a task that is not fenced since then wrote the entry in a transaction."""
        is_transactional = self.ledger_cache.transactional_task(tracked) != NO_TASK
        entry = self.ledger_cache.entries.get(tracked.source)
        return is_transactional and entry != tracked.fenced_entry

    def _fence_guarding_tasks(self, waiting: list[TrackedPartition]) -> None:
        """Fence the tasks whose ids guard the entries of these partitions."""
        if not self.membership.is_required:
            return
        new = [tracked for tracked in waiting if tracked.needs_resume_point]
        if not new:
            return
        self.ledger_cache.reload()
        guarding = {self.ledger_cache.guarding_task(tracked) for tracked in new}
        if unfenced := {task for task in guarding if not self.transactional_ids.has_fenced(task)}:
            self.transactional_ids.fence_tasks(unfenced)
            self.ledger_cache.reload()

    def _without_hanging(
        self, waiting: list[TrackedPartition], now: float
    ) -> list[TrackedPartition]:
        """The waiting partitions in whose remote partition no transaction hangs."""
        unchecked = [tracked for tracked in waiting if tracked.may_have_hanging_transaction]
        if unchecked:
            if self.membership.is_required:
                self.ledger_cache.reload()
            committed = self.ledger_cache.committed_target_ends(unchecked)
            clear = self.transactional_ids.end_hanging_transactions(committed)
            with self.lock:
                for tracked in unchecked:
                    tracked.may_have_hanging_transaction = (
                        tracked.target in committed and tracked.target not in clear
                    )
                    if tracked.may_have_hanging_transaction:
                        reason = f"target: {tracked.target} has no leader, or does not exist"
                        tracked.hold(reason, now, then=LeaseState.WAITING)
            self._warn_truncated([tracked for tracked in unchecked if tracked.target in clear])
        return [tracked for tracked in waiting if not tracked.may_have_hanging_transaction]

    def _warn_truncated(self, partitions: list[TrackedPartition]) -> None:
        """Publish that a target lost acknowledged records; copying appends at its end."""
        ends = self.clusters.target_ends(tracked.target for tracked in partitions)
        for tracked in partitions:
            lease, end = tracked.lease, ends[tracked.target]
            if lease is None or tracked.needs_resume_point or isinstance(end, ErrorCode):
                continue
            if warning := truncation_warning(tracked.target, lease.expected, end):
                self.publish("remote-truncated", tracked, warning)
                tracked.set_lease(replace(lease, expected=end))

    def _is_fenced(self, tracked: TrackedPartition) -> bool:
        return self.transactional_ids.fenced_since(tracked.last_task, tracked.doubtful_since)

    def _resume_at_committed(self, tracked: TrackedPartition) -> None:
        entry = self.ledger_cache.entries.get(tracked.source)
        assert tracked.lease is not None
        if entry and entry.position != tracked.lease.position:
            tracked.runs.mark_coarse()  # the owner committed more than it reported
        lease = lease_at_committed(tracked.lease, entry)
        tracked.continue_after(lease)

    def _publish(self, partitions: list[TrackedPartition]) -> None:
        """Report takeovers: each one, or many of them in one event."""
        if len(partitions) > MAX_SINGLE_EVENTS:
            text = (
                f"what the last owners of {len(partitions)} partitions, this one among them, had"
                " not committed is void; going on at the committed offsets"
            )
            self.publish("takeover", partitions[0], text)
            return
        for tracked in partitions:
            assert tracked.lease is not None
            self.publish(
                "takeover",
                tracked,
                f"what the last owner had not committed is void; going on at source offset"
                f" {tracked.lease.position}",
            )


def lease_at_committed(lease: Lease, entry: LedgerEntry | None) -> Lease:
    """Return the lease at the committed ledger entry.

    Without an entry nothing was committed after the lease was made: the lease does not change. An
    entry without our members (Java or an operator wrote it) moves only the position.
    """
    if entry is None:
        return lease
    lease = replace(lease, position=entry.position)
    if entry.extension:
        committed = entry.extension
        lease = replace(lease, expected=committed.expected, records=committed.records)
        lease = lease.with_source_epoch(committed.source_epoch)
    return lease
