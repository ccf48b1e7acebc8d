"""Succession: places whose owner went without a word go on at what it had committed.

The exactly-once counterpart of `takeover`. Nothing is looked for on the target: once the owner's
transactional id is taken, whatever it had not committed is void and it can commit nothing more, so
the offsets topic says where to go on. A task has one id for all its places, so it is taken only
when the task holds none of them any more. Before a place is granted, what may hang in its remote
partition is ended (`hanging`).

Belongs to the conductor's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, replace

from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.resume_points import truncation_warning
from sparkmirror.copy.driver.takeover import PublishEvent
from sparkmirror.copy.driver.task_attempts import TaskAttempt
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.driver.transactional_ids import TransactionalIds
from sparkmirror.wire.protocol.error_codes import ErrorCode


@dataclass(slots=True, kw_only=True)
class TransactionalTakeover:
    """Settles doubtful places of a job that copies in transactions."""

    clusters: ClusterQueries
    transactional_ids: TransactionalIds
    ledger_cache: LedgerCache
    publish: PublishEvent
    lock: threading.Lock

    def resolve(self, places: Collection[TrackedPartition]) -> None:
        """Let places wait to be granted at what was committed, as far as that is certain."""
        doubtful = [place for place in places if place.is_transaction_doubtful]
        leasing = {place.owner.task for place in places if place.owner}
        for task in {place.last_task for place in doubtful if not self._is_fenced(place)}:
            if task not in leasing:
                self.transactional_ids.fence(task)
        certain = [place for place in doubtful if self._is_fenced(place)]
        if certain:
            self.ledger_cache.load()
            with self.lock:
                for place in certain:
                    self._resume_at_committed(place)

    def grantable(
        self,
        attempt: TaskAttempt,
        mine: list[TrackedPartition],
        places: Collection[TrackedPartition],
        now: float,
    ) -> list[TrackedPartition]:
        """What an attempt may get, under its term; it gets one when it holds nothing of another."""
        if attempt.transactional_producer is None and any(
            place.owner == attempt.hello for place in places
        ):
            return []
        clear = self._without_hanging(mine, now)
        if clear and attempt.transactional_producer is None:
            attempt.transactional_producer = self.transactional_ids.acquire(attempt.hello.task)
        return clear if attempt.transactional_producer else []

    def _without_hanging(
        self, places: list[TrackedPartition], now: float
    ) -> list[TrackedPartition]:
        """Those of some waiting places in whose remote partition no transaction hangs."""
        unseen = [place for place in places if place.may_have_hanging_transaction]
        if unseen:
            asked = self.ledger_cache.committed_target_ends(unseen)
            clear = self.transactional_ids.end_hanging_transactions(asked)
            with self.lock:
                for place in unseen:
                    place.may_have_hanging_transaction = (
                        place.target in asked and place.target not in clear
                    )
                    if place.may_have_hanging_transaction:
                        why = f"target: {place.target} has no leader, or is not there"
                        place.hold(why, now, then=LeaseState.WAITING)
            self._warn_truncated([place for place in unseen if place.target in clear])
        return [place for place in places if not place.may_have_hanging_transaction]

    def _warn_truncated(self, places: list[TrackedPartition]) -> None:
        """A target that has lost what it had acknowledged is told, and appended to all the same."""
        ends = self.clusters.target_ends(place.target for place in places)
        for place in places:
            lease, end = place.lease, ends[place.target]
            if lease is None or place.needs_resume_point or isinstance(end, ErrorCode):
                continue
            if cut := truncation_warning(place, lease.expected, end):
                self.publish("remote-truncated", place, cut)
                place.set_lease(replace(lease, expected=end))

    def _is_fenced(self, place: TrackedPartition) -> bool:
        return self.transactional_ids.fenced_since(place.last_task, place.doubtful_since)

    def _resume_at_committed(self, place: TrackedPartition) -> None:
        """Take the offsets topic at its word; where it says nothing, nothing was committed."""
        entry = self.ledger_cache.entries.get(place.source)
        assert place.lease is not None
        lease = place.lease
        if entry and entry.position != lease.position:
            place.runs.mark_coarse()  # it had committed more than it reported
            lease = replace(lease, position=entry.position)
        if entry and entry.extension:
            ours = entry.extension
            lease = replace(lease, expected=ours.expected, records=ours.records)
            lease = lease.with_source_epoch(ours.source_epoch)
        place.set_lease(lease)
        self.publish(
            "takeover",
            place,
            f"what the last owner had not committed is void; going on at source offset"
            f" {lease.position}",
        )
