"""Granting: places that wait get a lease that fits both logs, and a task attempt gets the lease.

A place that is not opened yet is opened first: what the ledger and both logs say decides whether it
can go on, is doubtful, or has lost something. The rules of a remote topic are asked for once, and
again after something was refused. Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from sparkmirror.copy.control.messages import GrantLeases
from sparkmirror.copy.driver.cluster_queries import ClusterQueries
from sparkmirror.copy.driver.data_loss import DataLoss
from sparkmirror.copy.driver.event_log import EventLog
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.resume_points import ResumePoint, ResumePointFinder
from sparkmirror.copy.driver.task_attempts import TaskAttempt
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.job import DataLossPolicy
from sparkmirror.copy.settings import target_limits_to_json
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.error_codes import ErrorCode

MAX_PARTITIONS_PER_GRANT = 500
"""Places opened together: large enough for few requests, small enough to answer in between."""


class LeaseGranter:
    """Opens places and grants leases on them."""

    def __init__(
        self,
        clusters: ClusterQueries,
        openings: ResumePointFinder,
        book: LedgerCache,
        events: EventLog,
        on_loss: DataLossPolicy,
    ) -> None:
        self._clusters = clusters
        self._resume_points = openings
        self._ledger_cache = book
        self._events = events
        self.on_loss = on_loss
        self._limits: dict[str, TargetLimits | ErrorCode] = {}

    def grant(
        self, attempt: TaskAttempt, places: list[TrackedPartition], now: float, lock: threading.Lock
    ) -> None:
        """Grant what can be granted of a task's places; the others are held or doubtful."""
        for at in range(0, len(places), MAX_PARTITIONS_PER_GRANT):
            self._grant(attempt, places[at : at + MAX_PARTITIONS_PER_GRANT], now, lock)

    def target_limits(
        self, places: Iterable[TrackedPartition]
    ) -> dict[str, TargetLimits | ErrorCode]:
        """What the remote topics of these places take, asked for where it is not known."""
        known = {topic for topic, rules in self._limits.items() if isinstance(rules, TargetLimits)}
        unknown = {place.target.topic for place in places} - known
        if unknown:
            self._limits |= self._clusters.target_limits(unknown)
        return self._limits

    def invalidate_limits(self, topic: str) -> None:
        """Something was refused: the rules of the topic may have changed, or change soon."""
        self._limits.pop(topic, None)

    def _grant(
        self, attempt: TaskAttempt, places: list[TrackedPartition], now: float, lock: threading.Lock
    ) -> None:
        unopened = [place for place in places if place.needs_resume_point]
        opened = self._resume_points.find(unopened, self._ledger_cache.entries) if unopened else {}
        with lock:
            for place, opening in opened.items():
                self._apply_resume_point(place, opening, now)
        self.target_limits(places)
        with lock:
            ready = [place for place in places if self._is_ready(place, now)]
        if not ready:
            return
        self._ledger_cache.save(ready, is_open=True)
        leases = [place.lease for place in ready if place.lease]
        targets = {place.target.topic: self._limits_json(place) for place in ready}
        with lock:
            for place in ready:
                place.grant_to(attempt.hello)
        attempt.send(
            GrantLeases(
                leases=leases,
                target_limits=targets,
                transactional_producer=attempt.transactional_producer,
            )
        )

    def _apply_resume_point(
        self, place: TrackedPartition, opening: ResumePoint, now: float
    ) -> None:
        place.end_offset = opening.source_end
        if opening.error or opening.lease is None:
            place.hold(opening.error, now, then=LeaseState.WAITING)
            return
        place.set_lease(opening.lease)
        if opening.is_doubtful:
            place.release(clean=False, now=now)
        if opening.warning:
            self._events.publish("remote-truncated", place, opening.warning)
        if opening.loss:
            self._handle_loss(place, opening.loss, now)

    def _handle_loss(self, place: TrackedPartition, loss: DataLoss, now: float) -> None:
        """A loss is always told; the policy decides where to go on."""
        position = loss.resume_position(self.on_loss)
        decided = "copying stops" if position is None else f"going on at offset {position}"
        self._events.publish(
            loss.kind.value, place, f"{loss.text}; {decided}", (loss.lost_from, loss.lost_to)
        )
        if position is None:
            why = f"{loss.text}; decide with the loss policy"
            place.hold(why, now, then=LeaseState.WAITING, forever=True)
        else:
            place.seek(position)

    def _is_ready(self, place: TrackedPartition, now: float) -> bool:
        if place.state is not LeaseState.WAITING or place.needs_resume_point:
            return False
        rules = self._limits[place.target.topic]
        if isinstance(rules, TargetLimits):
            return True
        place.hold(f"target: {place.target.topic}: {rules}", now, then=LeaseState.WAITING)
        return False

    def _limits_json(self, place: TrackedPartition) -> dict[str, object]:
        rules = self._limits[place.target.topic]
        assert isinstance(rules, TargetLimits)
        return target_limits_to_json(rules)
