"""Lease grants: gives waiting partitions a lease and grants the leases to a task attempt.

A partition that needs a resume point gets it first (`resume_points`); afterwards it is waiting,
doubtful, or held because of an error or a loss. The limits of a remote topic are queried once, and
again after a task reported that the target refused a record.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from sparkmirror.copy.control.messages import GrantLeases
from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.data_loss import DataLoss
from sparkmirror.copy.driver.event_log import EventLog
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.resume_points import ResumePoint, ResumePointFinder
from sparkmirror.copy.driver.task_attempts import TaskAttempt
from sparkmirror.copy.driver.tracked_partition import UNKNOWN_END, LeaseState, TrackedPartition
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.settings import target_limits_to_json
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.error_codes import ErrorCode

MAX_PARTITIONS_PER_GRANT = 500
"""Few requests per grant; and the conductor handles messages between two grants."""


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
    ) -> None:
        self._clusters = clusters
        self._resume_points = resume_points
        self._ledger_cache = ledger_cache
        self._events = events
        self.on_loss = on_loss
        self._limits: dict[str, TargetLimits | ErrorCode] = {}

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
        for first in range(0, len(partitions), MAX_PARTITIONS_PER_GRANT):
            self._grant(attempt, partitions[first : first + MAX_PARTITIONS_PER_GRANT], now, lock)

    def target_limits(
        self, partitions: Iterable[TrackedPartition]
    ) -> dict[str, TargetLimits | ErrorCode]:
        """Return the limits of remote topics by name; queries those that are not known."""
        known = {
            topic for topic, limits in self._limits.items() if isinstance(limits, TargetLimits)
        }
        unknown = {tracked.target.topic for tracked in partitions} - known
        if unknown:
            self._limits |= self._clusters.target_limits(unknown)
        return self._limits

    def invalidate_limits(self, topic: str) -> None:
        """Query the limits of a remote topic again before the next grant."""
        self._limits.pop(topic, None)

    def _grant(
        self,
        attempt: TaskAttempt,
        partitions: list[TrackedPartition],
        now: float,
        lock: threading.Lock,
    ) -> None:
        unresolved = [tracked for tracked in partitions if tracked.needs_resume_point]
        entries = self._ledger_cache.entries
        resume_points = self._resume_points.find(unresolved, entries) if unresolved else {}
        with lock:
            for tracked, resume_point in resume_points.items():
                self._apply_resume_point(tracked, resume_point, now)
        self.target_limits(partitions)
        with lock:
            ready = [tracked for tracked in partitions if self._is_ready(tracked, now)]
        if not ready:
            return
        self._ledger_cache.save(ready, is_open=True)
        leases = [tracked.lease for tracked in ready if tracked.lease]
        limits = {tracked.target.topic: self._limits_json(tracked) for tracked in ready}
        with lock:
            for tracked in ready:
                tracked.grant_to(attempt.hello)
        attempt.send(
            GrantLeases(
                leases=leases,
                target_limits=limits,
                transactional_producer=attempt.transactional_producer,
            )
        )

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

    def _limits_json(self, tracked: TrackedPartition) -> dict[str, object]:
        limits = self._limits[tracked.target.topic]
        assert isinstance(limits, TargetLimits)
        return target_limits_to_json(limits)
