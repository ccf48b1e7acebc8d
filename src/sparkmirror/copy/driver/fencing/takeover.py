"""Takeover: gives a doubtful partition a lease that is certainly right.

    1. fence: the old owner can append nothing more
    2. reconcile: the target's log shows how far the old owner came
    3. the next lease starts behind the fence, at sequence 0

A partition that cannot be fenced or reconciled is held with the reason; the others go on. If the
principal may not use transactional ids, there is no fence: after the lease timeout the last owner
has stopped by itself, the old identity continues, and the broker's check of the sequence keeps
records from being appended twice. An event reports that. A lease that its owner gave back is taken
over when the target has had time to append what was on its way (`SETTLE_S`).

A target without producer ids has neither fence nor sequence. A lease that its owner gave back waits
for `SETTLE_S`, too; any other one so long after the lease timeout, or after the longest time of a
Produce request (`request.timeout.ms`) if that is longer. Then both logs are compared
record by record. One lost connection ends the leases of many partitions there, so one event reports
all that are taken over together. With a fence one event does so only for many partitions whose last
owners had reported everything.

`Takeover` talks to the clusters; `takeover_decisions` decides.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.fencing.fence import LogEnd, NoTransactions, PartitionFencer
from sparkmirror.copy.driver.fencing.reconcile import (
    ReconciledPosition,
    ReconcileFailed,
    ReconcileMethod,
    Reconciler,
    RouterLogReader,
)
from sparkmirror.copy.driver.fencing.takeover_decisions import (
    continues_sequence,
    is_counted_with_others,
    may_append_for_s,
    next_lease,
    takeover_events,
    takeover_text,
)
from sparkmirror.copy.driver.fencing.unfenced_log_ends import UnfencedLogEnds
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.errors import BatchError, ClusterError, NotAuthorized
from sparkmirror.mirror.offsets.joined_runs import join_runs
from sparkmirror.mirror.offsets.run_map_segments import RUNS_PER_SEGMENT
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import OffsetOutOfRange

NO_RIGHT_TO_FENCE = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

READ_TRIES = 3
"""A batch that cannot be read may have been damaged on its way: it is read again."""

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
    clock: Callable[[], float] = time.monotonic
    converters: ConverterFactory | None = None
    """Makes the converters of the job's tasks; None: they copy records unchanged."""
    policy_topics: Callable[[], Mapping[str, str]] = dict
    """Returns the names of remote topics before a route, by source topic."""
    _unused_fences: dict[TopicPartition, LogEnd] = field(default_factory=dict)
    """Fences of partitions that are still doubtful: they are not fenced again."""
    _together: int = 0
    """How many partitions are taken over at once."""
    _unreadable: Counter[TopicPartition] = field(default_factory=Counter)
    """How often a batch of a partition could not be read."""

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
        fences = self._fence([p for p in ready if p.target not in self._unused_fences], now)
        for tracked in ready:
            if unused := self._unused_fences.pop(tracked.target, None):
                fences[tracked.target] = unused
        self._together = len(ready)
        counted = self._resolve_all(ready, fences, now)
        if counted:
            self.publish("takeover", next(iter(counted)), takeover_text(counted.values()))

    def _resolve_all(
        self,
        ready: Mapping[TrackedPartition, TargetLimits],
        fences: Mapping[TopicPartition, LogEnd | ErrorCode],
        now: float,
    ) -> dict[TrackedPartition, ReconciledPosition]:
        """Resolve partitions one after the other. When a cluster is down, the others wait.

        Returns those whose takeover is not published yet: one event counts them.
        """
        unfenced = [tracked.target for tracked in ready if tracked.target not in fences]
        ends = UnfencedLogEnds(unfenced, self.clusters.target_ends, self.clock)
        counted: dict[TrackedPartition, ReconciledPosition] = {}
        cluster_error = ""
        for tracked, limits in ready.items():
            fence = fences.get(tracked.target)
            if isinstance(fence, ErrorCode):
                tracked.hold(_fence_error(fence), now, then=LeaseState.DOUBTFUL)
                continue
            if cluster_error:
                self._hold_fenced(tracked, fence, cluster_error, now)
                continue
            try:
                found = self._resolve_or_repeat(tracked, fence, ends, limits, now)
            except ClusterError as error:
                self._hold_fenced(tracked, fence, str(error), now)
                cluster_error = str(error) if error.retriable else ""
            else:
                if found:
                    counted[tracked] = found
        return counted

    def _resolve_or_repeat(
        self,
        tracked: TrackedPartition,
        fence: LogEnd | None,
        ends: UnfencedLogEnds,
        limits: TargetLimits,
        now: float,
    ) -> ReconciledPosition | None:
        """Resolve one partition. If its logs cannot be compared, it resumes at the ledger.

        Returns what was found if no event reports it. Raises ClusterError.
        """
        log_end = fence or ends.find(tracked.target)
        if isinstance(log_end, ErrorCode):
            tracked.hold(_fence_error(log_end), now, then=LeaseState.DOUBTFUL)
            return None
        try:
            found = self._resolve_one(tracked, log_end, limits)
        except (ReconcileFailed, OffsetOutOfRange, BatchError) as error:
            if isinstance(error, BatchError) and self._may_read_again(tracked.target):
                self._hold_fenced(tracked, fence, str(error), now)
                return None
            self._resume_from_ledger(tracked, log_end, str(error))
            found = None
        self._unreadable.pop(tracked.target, None)
        return found

    def _may_read_again(self, target: TopicPartition) -> bool:
        """Count a batch that could not be read; return whether there is another try."""
        self._unreadable[target] += 1
        return self._unreadable[target] < READ_TRIES

    def _hold_fenced(
        self, tracked: TrackedPartition, fence: LogEnd | None, reason: str, now: float
    ) -> None:
        """Hold a partition. If it is fenced, the next try uses the same fence."""
        if fence:
            self._unused_fences[tracked.target] = fence
        tracked.hold(reason, now, then=LeaseState.DOUBTFUL)

    def _is_ready(self, tracked: TrackedPartition, now: float) -> bool:
        """Whether nothing of the last owner arrives any more; else it waits until that is so."""
        fenceable = self.fences.fenceable_producer_id(tracked.target)
        ready_at = self._ready_at(tracked, fenceable)
        if now >= ready_at:
            return True
        reason = "the last task may still append; the takeover waits until it cannot"
        if tracked.is_given_back:
            reason = "the target may still append what was sent"
        tracked.wait_until(ready_at, reason, then=LeaseState.DOUBTFUL)
        return False

    def _ready_at(self, tracked: TrackedPartition, fenceable_producer_id: int | None) -> float:
        assert tracked.lease is not None
        return tracked.doubtful_since + may_append_for_s(
            tracked.lease,
            fenceable_producer_id,
            self.lease_timeout_s,
            plain_timeout_s=self.clusters.producer.produce_timeout_s(
                self.lease_timeout_s, is_idempotent=False
            ),
            is_given_back=tracked.is_given_back,
        )

    def _fence(
        self, partitions: list[TrackedPartition], now: float
    ) -> dict[TopicPartition, LogEnd | ErrorCode]:
        """Fence partitions. Leaves out those that are taken over without a fence."""
        if not partitions:
            return {}
        try:
            outcomes = dict(self.fences.fence(tracked.target for tracked in partitions))
        except NoTransactions:
            return {}
        except NotAuthorized as error:
            self._publish_unfenced(partitions, error)
            return {}
        # A right that was there when the driver started: the last owner has to stop by itself.
        refused = [
            tracked
            for tracked in partitions
            if outcomes[tracked.target] is NO_RIGHT_TO_FENCE
            and now >= self._ready_at(tracked, fenceable_producer_id=None)
        ]
        text = f"{NO_RIGHT_TO_FENCE}{_missing_right(NO_RIGHT_TO_FENCE)}"
        self._publish_unfenced(refused, NotAuthorized(self.clusters.target.client.cluster, text))
        for tracked in refused:
            del outcomes[tracked.target]
        return outcomes

    def _publish_unfenced(self, partitions: list[TrackedPartition], error: NotAuthorized) -> None:
        """Report that the broker's check of the sequence replaces the fence."""
        for tracked in partitions:
            self.publish("unfenced", tracked, f"taken over without a fence: {error}")

    def _resolve_one(
        self, tracked: TrackedPartition, log_end: LogEnd, limits: TargetLimits
    ) -> ReconciledPosition | None:
        """Reconcile, and set the next lease. Returns what was found if no event reports it."""
        lease = tracked.lease
        assert lease is not None
        if tracked.is_repositioned:
            found = ReconciledPosition(position=lease.position)
        else:
            found = self._reconciler().find(lease, log_end.end_of_batches, limits)
        is_unbroken = continues_sequence(lease, log_end.end_offset, found)
        producer = self._next_producer(log_end, is_unbroken=is_unbroken)
        self._update_runs(tracked, lease, log_end, found)
        is_counted = is_counted_with_others(lease, found, self._together)
        for kind, text in takeover_events(lease, log_end, found, is_counted=is_counted):
            self.publish(kind, tracked, text)
        tracked.continue_after(next_lease(lease, found, log_end.end_offset, producer))
        return found if is_counted else None

    def _resume_from_ledger(self, tracked: TrackedPartition, log_end: LogEnd, reason: str) -> None:
        """Resume at the ledger's position: records after it may be copied a second time."""
        lease = tracked.lease
        assert lease is not None
        self.publish(
            "repeat",
            tracked,
            f"{reason}; going on at offset {lease.position}: some records may come twice",
        )
        tracked.runs.mark_coarse()
        producer = self._next_producer(log_end, is_unbroken=False)
        position = ReconciledPosition(position=lease.position)
        tracked.set_lease(next_lease(lease, position, log_end.end_offset, producer))

    def _reconciler(self) -> Reconciler:
        return Reconciler(
            source=RouterLogReader(self.clusters.source),
            target=RouterLogReader(self.clusters.target),
            read_committed=self.clusters.read_committed,
            converters=self.converters or ConverterFactory(self.clusters.read_committed),
            policy_topics=self.policy_topics(),
        )

    def _next_producer(self, log_end: LogEnd, *, is_unbroken: bool) -> ProducerIdAndEpoch | None:
        """The producer of the next lease; None: the old identity continues."""
        if log_end.identity or (is_unbroken and self.fences.is_idempotent):
            return log_end.identity
        return self.fences.new_unfenced_identity()

    def _update_runs(
        self,
        tracked: TrackedPartition,
        lease: Lease,
        log_end: LogEnd,
        found: ReconciledPosition,
    ) -> None:
        if found.method is ReconcileMethod.JUMP:
            tracked.add_run(lease.position, lease.expected, found.appended)
        elif found.method is ReconcileMethod.COMPARE or found.runs:
            for run in join_runs(found.runs, RUNS_PER_SEGMENT):
                tracked.add_run(run.source_first, run.target_first, run.length)
        elif found.method is ReconcileMethod.WALK:
            tracked.runs.mark_coarse()  # the target offsets of the appended records are not known
        if log_end.end_before_fence < lease.expected:
            tracked.runs.reset()


def _fence_error(code: ErrorCode) -> str:
    return f"target: cannot be fenced: {code}{_missing_right(code)}"


def _missing_right(code: ErrorCode) -> str:
    """Return what to grant; empty if the code names no missing right."""
    if code is NO_RIGHT_TO_FENCE:
        return "; grant Write and Describe on the transactional ids"
    if code.action is ErrorAction.NOT_AUTHORIZED:
        return "; grant Read and Write on the topic"
    return ""
