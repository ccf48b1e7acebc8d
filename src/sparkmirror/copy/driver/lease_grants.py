"""Lease grants: gives waiting partitions a lease and grants the leases to a task attempt.

A partition that needs a resume point gets it first (`resume_point_decision`); afterwards it is
waiting, doubtful, or held because of an error or a loss. The limits of a remote topic are queried
once, and again after a task reported that the target refused a record.

If several conductors share the connector, a resume point comes from the entries that the ledger has
now. A partition that its former owner has not given back waits (`sharing.former_owner_wait`). A
partition is granted only if this conductor wins the claim (`ledger_cache`).
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.copy.control.messages import GrantLeases
from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.monitoring.event_log import EventLog
from sparkmirror.copy.driver.resume.data_loss import DataLoss
from sparkmirror.copy.driver.resume.resume_point_decision import ResumePoint
from sparkmirror.copy.driver.resume.resume_point_finder import ResumePointFinder
from sparkmirror.copy.driver.routed_topics import RoutedTopics, RoutedTopicsFound
from sparkmirror.copy.driver.sharing.former_owner_wait import (
    POLL_INTERVAL_S,
    WAITS_FOR_FORMER_OWNER,
    FormerOwnerWait,
)
from sparkmirror.copy.driver.sharing.worker_group_membership import GroupMembership
from sparkmirror.copy.driver.task_attempts import TaskAttempt
from sparkmirror.copy.driver.tracked_partition import UNKNOWN_END, LeaseState, TrackedPartition
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.settings import target_limits_to_json
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.error_codes import ErrorCode

log = logging.getLogger(__name__)

MAX_PARTITIONS_PER_GRANT = 500
"""One write to the ledger and one message to the task have so many leases."""
MAX_PARTITIONS_PER_QUERY = 2_500
"""For so many partitions both clusters are asked together where to continue: every such step asks
for the metadata of their topics again, and a partition without a leader delays the step."""


DECIDE = (
    "decide: sparkmirror.on.loss=skip goes on with what the source has,"
    " sparkmirror.on.loss=restart copies the partition from its beginning"
)
"""How the operator ends a halt. `sparkmirror copy` has the option --on-loss for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossDecision:
    """What follows from a loss: the event, and the new position or the reason to halt."""

    event_text: str
    position: int | None = None
    halt_reason: str = ""


def decide_loss(loss: DataLoss, policy: DataLossPolicy) -> LossDecision:
    """Apply the job's policy to a loss."""
    position = loss.resume_position(policy)
    if position is None:
        return LossDecision(
            event_text=f"{loss.text}; copying stops",
            halt_reason=f"{loss.text}; {DECIDE}",
        )
    return LossDecision(event_text=f"{loss.text}; going on at offset {position}", position=position)


class LeaseGranter:
    """Grants leases. Blocks; belongs to the conductor's thread."""

    def __init__(
        self,
        clusters: ClusterQueries,
        resume_points: ResumePointFinder,
        ledger_cache: LedgerCache,
        events: EventLog,
        on_loss: DataLossPolicy,
        membership: GroupMembership | None = None,
        routed_topics: RoutedTopics | None = None,
    ) -> None:
        """Without a membership no other conductor shares the connector."""
        self._membership = membership or GroupMembership(is_required=False)
        self._hand_overs = FormerOwnerWait()
        self._clusters = clusters
        self._resume_points = resume_points
        self._ledger_cache = ledger_cache
        self._events = events
        self.on_loss = on_loss
        self._limits: dict[str, TargetLimits | ErrorCode] = {}
        self._routed_topics = routed_topics or RoutedTopics(clusters)

    def grant(
        self,
        attempt: TaskAttempt,
        partitions: list[TrackedPartition],
        now: float,
        lock: threading.Lock,
    ) -> None:
        """Grant what can be granted of a task's waiting partitions; the others change state.

        `lock` protects the partitions: this method holds it only while it changes them.
        """
        self.resolve(partitions, now, lock)
        for first in range(0, len(partitions), MAX_PARTITIONS_PER_GRANT):
            self._grant(attempt, partitions[first : first + MAX_PARTITIONS_PER_GRANT], now, lock)

    def resolve(
        self, partitions: Iterable[TrackedPartition], now: float, lock: threading.Lock
    ) -> None:
        """Find the resume points that waiting partitions need.

        Afterwards each partition is waiting, doubtful or held. For partitions of several tasks this
        sends fewer requests than a grant for each task.
        """
        unresolved = [
            tracked
            for tracked in partitions
            if tracked.needs_resume_point and tracked.state is LeaseState.WAITING
        ]
        for first in range(0, len(unresolved), MAX_PARTITIONS_PER_QUERY):
            self._resolve(unresolved[first : first + MAX_PARTITIONS_PER_QUERY], now, lock)

    def _resolve(
        self, unresolved: list[TrackedPartition], now: float, lock: threading.Lock
    ) -> None:
        resume_points = self._find_resume_points(unresolved)
        renamed: dict[tuple[str, str, str], int] = defaultdict(int)
        with lock:
            for tracked, resume_point in resume_points.items():
                if self._is_held_by_former_owner(tracked, resume_point, now):
                    tracked.wait_for(WAITS_FOR_FORMER_OWNER, now, POLL_INTERVAL_S)
                    continue
                self._apply_resume_point(tracked, resume_point, now)
                if former := resume_point.renamed_from:
                    renamed[tracked.source.topic, former, tracked.target.topic] += 1
        for (topic, former, remote), partitions in renamed.items():
            log.warning(
                "%s: its remote topic was %s and is %s now: copying of %d partitions goes on there,"
                " at the same source offsets; %s keeps what it has",
                *(topic, former, remote, partitions, former),
            )

    def target_limits(
        self, partitions: Iterable[TrackedPartition]
    ) -> dict[str, TargetLimits | ErrorCode]:
        """Return the limits of remote topics by name; queries those that are not known."""
        return self._query_limits({tracked.target.topic for tracked in partitions})

    def _query_limits(self, topics: Iterable[str]) -> dict[str, TargetLimits | ErrorCode]:
        known = {
            topic for topic, limits in self._limits.items() if isinstance(limits, TargetLimits)
        }
        unknown = set(topics) - known
        if unknown:
            self._limits |= self._clusters.target_limits(unknown)
        return self._limits

    def invalidate_limits(self, topic: str) -> None:
        """Query the limits of a remote topic, and of all routed ones, before the next grant."""
        for name in (topic, *self._routed_topics.names):
            self._limits.pop(name, None)

    def avoid_codec(self, number: int, reason: str) -> None:
        """Send no batch with this codec in later leases. Logs the first refusal of a codec."""
        codec = CompressionType.for_id(number)
        producer = self._clusters.producer
        if codec not in producer.codecs:
            return
        self._clusters.producer = producer.without(codec)
        self._limits.clear()
        log.warning(
            "%s. Batches compressed with %s are sent with %s from now on",
            reason,
            codec.config_name,
            self._clusters.producer.fallback_codec.config_name,
        )

    def _grant(
        self,
        attempt: TaskAttempt,
        partitions: list[TrackedPartition],
        now: float,
        lock: threading.Lock,
    ) -> None:
        self.target_limits(partitions)
        routed = self._find_routed_topics(partitions)
        with lock:
            for tracked in partitions:
                self._hold_without_topic(tracked, routed, now)
            ready = [tracked for tracked in partitions if self._is_ready(tracked, now)]
            for tracked in ready:
                tracked.wanted_topic = ""
                tracked.set_chain(self._resume_points.job.chain_of(tracked.source.topic))
        if not ready:
            return
        won = self._ledger_cache.claim(ready)
        with lock:
            for lost in set(ready) - won:
                self._on_claim_lost(lost)
            ready = [tracked for tracked in ready if tracked in won]
            for tracked in ready:
                tracked.set_grantor(self._ledger_cache.conductor, attempt.hello.task)
        if not ready or not self._membership.is_valid():
            return  # the calls above may have taken longer than the membership was valid
        leases = [tracked.lease for tracked in ready if tracked.lease]
        topics = {tracked.target.topic for tracked in ready} | routed.partitions.keys()
        limits = {topic: self._limits_json(topic) for topic in topics}
        with lock:
            for tracked in ready:
                tracked.grant_to(attempt.hello)
        attempt.send(
            GrantLeases(
                leases=leases,
                target_limits=limits,
                policy_topics=self._policy_topics(ready),
                routed_topics=routed.partitions,
                transactional_producer=attempt.transactional_producer,
            )
        )

    def _find_resume_points(
        self, partitions: list[TrackedPartition]
    ) -> Mapping[TrackedPartition, ResumePoint]:
        if self._membership.is_required:
            self._ledger_cache.reload()
        self._ledger_cache.continue_from(partitions)
        return self._resume_points.find(partitions, self._ledger_cache.entries)

    def _is_held_by_former_owner(
        self, tracked: TrackedPartition, resume_point: ResumePoint, now: float
    ) -> bool:
        """Whether a conductor of another worker may still give the partition back."""
        entry = self._ledger_cache.entries.get(tracked.source)
        if (
            self._membership.is_alone
            or not (resume_point.is_doubtful or resume_point.renamed_from)
            or entry is None
            or entry.extension is None
            or not entry.extension.is_open
            or not self._ledger_cache.is_foreign(entry)
        ):
            self._hand_overs.forget(tracked.source)
            return False
        return self._hand_overs.is_waiting(tracked.source, entry, resume_point.target_end, now)

    def _on_claim_lost(self, tracked: TrackedPartition) -> None:
        """Another conductor took the partition: compare it again when that one is not the owner."""
        log.info(
            "%s: another conductor of the connector has claimed it, or the claim is not read back",
            tracked.source,
        )
        tracked.give_up(self._membership.renewals_after_fence())

    def _apply_resume_point(
        self, tracked: TrackedPartition, resume_point: ResumePoint, now: float
    ) -> None:
        """Set the lease of a partition, or hold it; publish a warning or a loss. Lock required."""
        tracked.set_end(resume_point.source_end)
        tracked.waiting_since = now
        existing = resume_point.existing
        if existing and existing.kind:
            self._events.publish(existing.kind, tracked, existing.text)
        if existing and existing.position is None:
            tracked.hold(existing.text, now, then=LeaseState.WAITING, forever=True)
            return
        if resume_point.error or resume_point.lease is None:
            tracked.hold(resume_point.error, now, then=LeaseState.WAITING)
            return
        tracked.set_lease(resume_point.lease)
        tracked.needs_run_map = self._membership.is_required
        tracked.drops_stored_runs = bool(resume_point.renamed_from)
        if resume_point.renamed_from:
            tracked.runs.reset()
        if existing and existing.copied:
            tracked.add_run(*existing.copied)
        if resume_point.is_doubtful:
            tracked.release(clean=False, now=now)
        if resume_point.warning:
            self._events.publish("remote-truncated", tracked, resume_point.warning)
        if resume_point.loss:
            self._apply_loss(tracked, resume_point.loss, now)

    def _apply_loss(self, tracked: TrackedPartition, loss: DataLoss, now: float) -> None:
        decision = decide_loss(loss, self.on_loss)
        self._events.publish(
            loss.kind.value, tracked, decision.event_text, (loss.lost_from, loss.lost_to)
        )
        if decision.position is None:
            tracked.hold(decision.halt_reason, now, then=LeaseState.WAITING, forever=True)
            tracked.end_offset = UNKNOWN_END  # it says nothing about this position
        else:
            tracked.seek(decision.position)

    def _is_ready(self, tracked: TrackedPartition, now: float) -> bool:
        """Whether a partition can be granted now; holds it if the target limits are unknown."""
        if tracked.state is not LeaseState.WAITING or tracked.needs_resume_point:
            return False
        limits = self._limits[tracked.target.topic]
        if isinstance(limits, TargetLimits):
            return True
        tracked.hold(f"target: {tracked.target.topic}: {limits}", now, then=LeaseState.WAITING)
        return False

    def _policy_topics(self, partitions: Iterable[TrackedPartition]) -> dict[str, str]:
        """The names of their remote topics before a route, where there is one."""
        known = self._resume_points.job.policy_topics
        topics = {tracked.source.topic for tracked in partitions}
        return {topic: known[topic] for topic in topics & known.keys()}

    def _find_routed_topics(self, partitions: list[TrackedPartition]) -> RoutedTopicsFound:
        """Create the topics that partitions ask for, and query their limits."""
        found = self._routed_topics.find(partitions)
        if not found.partitions:
            return found
        limits = self._query_limits(found.partitions)
        usable = {
            topic: count
            for topic, count in found.partitions.items()
            if isinstance(limits[topic], TargetLimits)
        }
        return RoutedTopicsFound(usable, found.errors)

    def _hold_without_topic(
        self, tracked: TrackedPartition, routed: RoutedTopicsFound, now: float
    ) -> None:
        """Hold a partition whose next record goes to a topic that cannot be had now."""
        topic = tracked.wanted_topic
        is_usable = routed.partitions.get(topic, 0) > tracked.source.partition
        if not topic or is_usable or tracked.state is not LeaseState.WAITING:
            return
        limits = self._limits.get(topic)
        code = limits if isinstance(limits, ErrorCode) else None
        error = routed.errors.get(topic) or code or "it has too few partitions"
        tracked.hold(
            f"target: transforms send records to {topic}, which cannot be used: {error};"
            " create the topic, or grant Create, Describe and DescribeConfigs on it",
            now,
            then=LeaseState.WAITING,
        )

    def _limits_json(self, topic: str) -> dict[str, object]:
        limits = self._limits[topic]
        assert isinstance(limits, TargetLimits)
        return target_limits_to_json(limits)
