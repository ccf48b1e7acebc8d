"""Takeover: gives a doubtful partition a lease that is certainly right.

    1. fence: the old owner can append nothing more
    2. reconcile: the target's log shows how far the old owner came
    3. the next lease starts behind the fence, at sequence 0

A partition that cannot be fenced or reconciled is held with the reason; the others go on. If the
principal may not use transactional ids, there is no fence: after the lease timeout the last owner
has stopped by itself, the old identity continues, and the broker's check of the sequence keeps
records from being appended twice. An event reports that.

A target without producer ids has neither fence nor sequence. A lease that its owner gave back is
taken over when the target has had time to append what was on its way (`SETTLE_S`); any other one so
long after the lease timeout. Then both logs are compared record by record.

`Takeover` talks to the clusters. The decisions are pure functions: `can_take_over`,
`continues_sequence`, `next_lease`, `takeover_events`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.fencing.fence import FencedPartition, NoTransactions, PartitionFencer
from sparkmirror.copy.driver.fencing.reconcile import (
    ReconciledPosition,
    ReconcileFailed,
    ReconcileMethod,
    Reconciler,
    RouterLogReader,
)
from sparkmirror.copy.driver.resume.resume_point_decision import truncation_warning
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.errors import ClusterError, MirrorError, NotAuthorized
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import OffsetOutOfRange

NO_RIGHT_TO_FENCE = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

SETTLE_S = 1.0
"""How long a target without producer ids may take to append a request of a lost connection."""

PublishEvent = Callable[[str, TrackedPartition, str], None]
"""Publishes an event for the operator: kind, partition, text."""


@dataclass(slots=True, kw_only=True)
class Takeover:
    """Resolves doubtful partitions. Blocks; belongs to the conductor's thread."""

    clusters: ClusterQueries
    fences: PartitionFencer
    publish: PublishEvent
    lease_timeout_s: float
    """A task without contact to the driver stops copying after this time."""
    _unused_fences: dict[TopicPartition, FencedPartition] = field(default_factory=dict)
    """Fences of partitions that are still doubtful: they are not fenced again."""

    def resolve(
        self,
        partitions: list[TrackedPartition],
        limits: Mapping[str, TargetLimits | ErrorCode],
        now: float,
    ) -> None:
        """Fence and reconcile; afterwards each partition is waiting or held."""
        ready: dict[TrackedPartition, TargetLimits] = {}
        for tracked in partitions:
            topic = tracked.target.topic
            topic_limits = limits.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if isinstance(topic_limits, ErrorCode):
                tracked.hold(f"target: {topic}: {topic_limits}", now, then=LeaseState.DOUBTFUL)
            elif self._is_ready(tracked, now):
                ready[tracked] = topic_limits
        fenced = self._fence([p for p in ready if p.target not in self._unused_fences], now)
        cluster_error = ""
        for tracked, topic_limits in ready.items():
            outcome = self._unused_fences.pop(tracked.target, None) or fenced[tracked.target]
            if isinstance(outcome, ErrorCode):
                tracked.hold(_fence_error(outcome), now, then=LeaseState.DOUBTFUL)
            elif cluster_error:
                self._hold_fenced(tracked, outcome, cluster_error, now)
            else:
                cluster_error = self._resolve_or_hold(tracked, outcome, topic_limits, now)

    def _resolve_or_hold(
        self, tracked: TrackedPartition, fenced: FencedPartition, limits: TargetLimits, now: float
    ) -> str:
        """Resolve one partition. Returns the error if a cluster is down: the others then wait."""
        try:
            self._resolve_one(tracked, fenced, limits)
        except (ReconcileFailed, OffsetOutOfRange) as error:
            self._resume_from_ledger(tracked, fenced, str(error))
        except ClusterError as error:
            self._hold_fenced(tracked, fenced, str(error), now)
            return str(error) if error.retriable else ""
        return ""

    def _hold_fenced(
        self, tracked: TrackedPartition, fenced: FencedPartition, reason: str, now: float
    ) -> None:
        """Hold a fenced partition. The next try uses the same fence."""
        if fenced.identity:
            self._unused_fences[tracked.target] = fenced
        tracked.hold(reason, now, then=LeaseState.DOUBTFUL)

    def _is_ready(self, tracked: TrackedPartition, now: float) -> bool:
        assert tracked.lease is not None
        doubtful_s = now - tracked.doubtful_since
        if can_take_over(
            tracked.lease,
            self.fences.fenceable_producer_id(tracked.target),
            doubtful_s,
            self.lease_timeout_s,
            is_given_back=tracked.is_given_back,
        ):
            return True
        reason = "the last owner may still be there"
        if tracked.is_given_back and not tracked.lease.is_idempotent:
            reason = "the target may still append what was sent"
        tracked.hold(reason, now, then=LeaseState.DOUBTFUL)
        return False

    def _fence(
        self, partitions: list[TrackedPartition], now: float
    ) -> dict[TopicPartition, FencedPartition | ErrorCode]:
        if not partitions:
            return {}
        try:
            outcomes = dict(self.fences.fence(tracked.target for tracked in partitions))
        except (NotAuthorized, NoTransactions) as error:
            return self._without_fence(partitions, error)
        # A right that was there when the driver started: the last owner has to stop by itself.
        refused = [
            tracked
            for tracked in partitions
            if outcomes[tracked.target] is NO_RIGHT_TO_FENCE
            and now - tracked.doubtful_since >= self.lease_timeout_s
        ]
        if refused:
            text = f"{NO_RIGHT_TO_FENCE}{_missing_right(NO_RIGHT_TO_FENCE)}"
            cause = NotAuthorized(self.clusters.target.client.cluster, text)
            outcomes |= self._without_fence(refused, cause)
        return outcomes

    def _without_fence(
        self, partitions: list[TrackedPartition], error: MirrorError
    ) -> dict[TopicPartition, FencedPartition | ErrorCode]:
        """Continue the old identity; the broker checks the sequence of what it still appends."""
        for tracked in partitions:
            if isinstance(error, NotAuthorized):
                self.publish("unfenced", tracked, f"taken over without a fence: {error}")
        ends = self.clusters.target_ends([tracked.target for tracked in partitions])
        return {
            target: end if isinstance(end, ErrorCode) else FencedPartition(None, end)
            for target, end in ends.items()
        }

    def _resolve_one(
        self, tracked: TrackedPartition, fenced: FencedPartition, limits: TargetLimits
    ) -> None:
        lease = tracked.lease
        assert lease is not None
        if tracked.is_repositioned:
            found = ReconciledPosition(position=lease.position)
        else:
            found = self._reconciler().find(lease, fenced.end_of_batches, limits)
        is_unbroken = continues_sequence(lease, fenced.end_offset, found)
        producer = self._next_producer(fenced, is_unbroken=is_unbroken)
        self._update_runs(tracked, lease, fenced, found)
        for kind, text in takeover_events(lease, fenced, found):
            self.publish(kind, tracked, text)
        tracked.continue_after(next_lease(lease, found, fenced.end_offset, producer))

    def _resume_from_ledger(
        self, tracked: TrackedPartition, fenced: FencedPartition, reason: str
    ) -> None:
        """Resume at the ledger's position: records after it may be copied a second time."""
        lease = tracked.lease
        assert lease is not None
        self.publish(
            "repeat",
            tracked,
            f"{reason}; going on at offset {lease.position}: some records may come twice",
        )
        tracked.runs.mark_coarse()
        producer = self._next_producer(fenced, is_unbroken=False)
        position = ReconciledPosition(position=lease.position)
        tracked.set_lease(next_lease(lease, position, fenced.end_offset, producer))

    def _reconciler(self) -> Reconciler:
        return Reconciler(
            source=RouterLogReader(self.clusters.source),
            target=RouterLogReader(self.clusters.target),
            read_committed=self.clusters.read_committed,
        )

    def _next_producer(
        self, fenced: FencedPartition, *, is_unbroken: bool
    ) -> ProducerIdAndEpoch | None:
        """The producer of the next lease; None: the old identity continues."""
        if fenced.identity or (is_unbroken and self.fences.is_idempotent):
            return fenced.identity
        return self.fences.new_unfenced_identity()

    def _update_runs(
        self,
        tracked: TrackedPartition,
        lease: Lease,
        fenced: FencedPartition,
        found: ReconciledPosition,
    ) -> None:
        if found.method is ReconcileMethod.JUMP:
            tracked.add_run(lease.position, lease.expected, found.appended)
        elif found.method is ReconcileMethod.COMPARE:
            for run in found.runs:
                tracked.add_run(run.source_first, run.target_first, run.length)
        elif found.method is ReconcileMethod.WALK:
            tracked.runs.mark_coarse()  # the target offsets of the appended records are not known
        if fenced.end_before_fence < lease.expected:
            tracked.runs.reset()


def can_take_over(
    lease: Lease,
    fenceable_producer_id: int | None,
    doubtful_s: float,
    lease_timeout_s: float,
    *,
    is_given_back: bool = False,
) -> bool:
    """Whether a fence stops the last owner, or the last owner has stopped by itself.

    A fence raises the epoch of one producer id. It does not stop an owner that wrote under another
    one: without a transactional id, or under one that the brokers have forgotten.
    `fenceable_producer_id` is None if there is no fence. Without a producer id nothing stops an
    owner that has not given the lease back (`is_given_back`), and what it sent last may be appended
    after it has stopped.
    """
    if not lease.is_idempotent:
        return doubtful_s >= (SETTLE_S if is_given_back else lease_timeout_s + SETTLE_S)
    return lease.identity.producer_id == fenceable_producer_id or doubtful_s >= lease_timeout_s


def continues_sequence(lease: Lease, target_end: int, found: ReconciledPosition) -> bool:
    """Whether everything up to the end of the target log was appended under the old identity."""
    return target_end == lease.expected + found.appended and not found.has_foreign_records


def next_lease(
    lease: Lease,
    found: ReconciledPosition,
    target_end: int,
    producer: ProducerIdAndEpoch | None,
) -> Lease:
    """Return the lease of the next owner; without a producer the old identity continues."""
    identity = lease.identity
    if producer:
        identity = LeaseIdentity(
            producer_id=producer.producer_id, producer_epoch=producer.epoch, anchor=target_end
        )
    return replace(
        lease,
        position=found.position,
        expected=target_end,
        identity=identity,
        records=lease.records + found.appended,
    )


def takeover_events(
    lease: Lease, fenced: FencedPartition, found: ReconciledPosition
) -> list[tuple[str, str]]:
    """Return kind and text of the events to publish."""
    events = []
    if found.has_foreign_records:
        text = f"another producer writes to {lease.target}; protect the remote topic by an ACL"
        events.append(("foreign-writer", text))
    if text := truncation_warning(lease.target, lease.expected, fenced.end_before_fence):
        events.append(("remote-truncated", text))
    text = (
        f"the last owner had appended {found.appended} records that it did not report;"
        f" going on at source offset {found.position} ({found.method})"
    )
    return [*events, ("takeover", text)]


def _fence_error(code: ErrorCode) -> str:
    return f"target: cannot be fenced: {code}{_missing_right(code)}"


def _missing_right(code: ErrorCode) -> str:
    """Return what to grant; empty if the code names no missing right."""
    if code is NO_RIGHT_TO_FENCE:
        return "; grant Write and Describe on the transactional ids"
    if code.action is ErrorAction.NOT_AUTHORIZED:
        return "; grant Read and Write on the topic"
    return ""
