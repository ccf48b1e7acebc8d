"""Tasks come, report and go: who is there, who holds which place, and what becomes of it.

What the conductor does with places (`conductor`) begins where this ends: here a place is freed,
cleanly or doubtfully, and there somebody gets it again. Knows no cluster and does not wait: every
method is called with the conductor's lock held.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from sparkmirror.copy.control.messages import (
    ControlMessage,
    Hello,
    LeaseEnded,
    LeaseEndReason,
    ProgressReport,
    RevokeLeases,
    SetRateLimit,
    TaskDone,
    Welcome,
)
from sparkmirror.copy.driver.event_log import EventLog
from sparkmirror.copy.driver.lease_grants import LeaseGranter
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.pending_receipts import PendingReceipts
from sparkmirror.copy.driver.progress_publisher import ProgressPublisher
from sparkmirror.copy.driver.resume_points import ResumePointFinder
from sparkmirror.copy.driver.task_attempts import TaskAttempt, TaskAttempts
from sparkmirror.copy.driver.tracked_partition import NO_TASK, LeaseState, TrackedPartition
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class TaskEventHandler:
    """Where tasks come to, with all places of a job."""

    job: CopyJob
    ledger_cache: LedgerCache
    events: EventLog
    progress: ProgressPublisher
    resume_points: ResumePointFinder
    lease_granter: LeaseGranter
    pending_receipts: PendingReceipts
    attempts: TaskAttempts = field(default_factory=TaskAttempts)
    partitions: dict[TopicPartition, TrackedPartition] = field(init=False)
    is_draining: bool = False
    _lanes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def __post_init__(self) -> None:
        self.partitions = {
            partition: TrackedPartition(partition, self.job.remote_partition(partition), task)
            for task, partitions in enumerate(self.job.tasks)
            for partition in partitions
        }

    def snapshot(self) -> CopySnapshot:
        """Where everything stands, as of the last reports."""
        return CopySnapshot(
            partitions={
                str(p): place.view()
                for p, place in self.partitions.items()
                if place.is_planned or place.state is LeaseState.LEASED
            },
            lanes={topic: dict(counts) for topic, counts in self._lanes.items()},
            events=self.events.latest(),
        )

    @property
    def is_drained(self) -> bool:
        """Whether everything was asked back, and came."""
        return self.is_draining and all(
            place.state is not LeaseState.LEASED for place in self.partitions.values()
        )

    # -- tasks -----------------------------------------------------------------------------------

    def on_joined(self, attempt: TaskAttempt) -> None:
        """A task attempt has come; another one of its task is given up for it."""
        before = self.attempts.current_for(attempt.hello)
        if before:
            self.on_attempt_lost(before.hello, "another attempt of its task has come")
        self.attempts.add(attempt)
        self.pending_receipts.on_attempt_started(attempt.hello)
        attempt.send(Welcome(settings=self.job.settings.to_json()))
        if self.is_draining:
            attempt.drain()

    def on_message(self, hello: Hello, message: ControlMessage) -> None:
        """A task attempt has said something."""
        attempt = self.attempts.find(hello)
        if attempt is None:
            return  # a task that was given up: whatever it says, its partitions were taken over
        attempt.last_message_at = time.monotonic()
        match message:
            case ProgressReport():
                self._on_report(hello, message)
            case LeaseEnded():
                self._on_lease_ended(hello, message)
            case TaskDone():
                self._on_done(hello)
            case _:
                log.warning("A task does not say %s", type(message).__name__)

    def _on_report(self, hello: Hello, report: ProgressReport) -> None:
        for topic, counts in report.lanes.items():
            self._lanes[topic].update(counts)
        for key, standing in report.progress.items():
            place = self._partition_owned_by(hello, key)
            if place:
                place.on_progress(standing)
        for key, source_first, target_first, length in report.runs:
            place = self._partition_owned_by(hello, key)
            if place:
                place.add_run(source_first, target_first, length)
                self.progress.on_copied(place.source, OffsetRun(source_first, target_first, length))
        for key, size in report.bytes.items():
            place = self._partition_owned_by(hello, key)
            if place:
                place.bytes += size

    def _on_lease_ended(self, hello: Hello, ended: LeaseEnded) -> None:
        place = self._partition_owned_by(hello, ended.partition)
        if place is None:
            return
        now = time.monotonic()
        place.advance_to(ended.position, ended.expected, ended.records)
        self.pending_receipts.add(hello, place)
        place.release(clean=ended.is_clean, now=now)
        if place.is_transactional:
            self._on_transactional_end(hello, place)
        if ended.reason is LeaseEndReason.CLOSED:
            return
        if ended.message != place.last_event_text:
            self.events.publish(ended.reason.value, place, ended.message)
            place.last_event_text = ended.message
        match ended.reason:
            case (
                LeaseEndReason.OUT_OF_RANGE
                | LeaseEndReason.SOURCE_GONE
                | LeaseEndReason.TARGET_GONE
            ) if not place.is_transaction_doubtful:
                self.ledger_cache.record_and_reopen(place)
                place.hold(ended.message, now, then=LeaseState.WAITING)
            case LeaseEndReason.REFUSED | LeaseEndReason.NOT_AUTHORIZED:
                self.lease_granter.invalidate_limits(place.target.topic)
                place.hold(ended.message, now, then=place.state)

    def _on_transactional_end(self, hello: Hello, place: TrackedPartition) -> None:
        """What ends cleanly was committed; what does not ends the term of the whole task."""
        if place.state is LeaseState.WAITING:
            self.ledger_cache.record(place)
        elif attempt := self.attempts.find(hello):
            attempt.transactional_producer = None

    def on_attempt_lost(self, hello: Hello, why: str) -> None:
        """Give a task attempt up: what it had is doubtful."""
        attempt = self.attempts.find(hello)
        if attempt is None:
            return
        self.attempts.remove(hello)
        attempt.abort(why)
        now = time.monotonic()
        owned = [place for place in self.partitions.values() if place.owner == hello]
        for place in owned:
            self.pending_receipts.add(hello, place)
            place.release(clean=False, now=now)
        self.pending_receipts.on_attempt_lost(hello)
        if owned:
            log.warning(
                "Task %d (attempt %d) is given up: %s; %d partitions are taken over",
                hello.task,
                hello.attempt,
                why,
                len(owned),
            )

    def _on_done(self, hello: Hello) -> None:
        """A task has given everything back; what was granted since then it never used."""
        self.attempts.remove(hello)
        self.pending_receipts.on_attempt_done(hello)
        now = time.monotonic()
        for place in self.partitions.values():
            if place.owner == hello:
                place.release(clean=True, now=now)

    def expire_silent(self, now: float) -> None:
        """Give up whoever was not heard for too long."""
        for attempt in self.attempts.silent_since(now - self.job.task_timeout_s):
            self.on_attempt_lost(
                attempt.hello, f"nothing heard for {self.job.task_timeout_s:.0f} s"
            )

    def _partition_owned_by(self, hello: Hello, key: str) -> TrackedPartition | None:
        place = self.partitions.get(TopicPartition.parse(key))
        return place if place and place.owner == hello else None

    def drain(self) -> None:
        """Ask for everything back, for good."""
        self.is_draining = True
        self.end_epoch()

    def end_epoch(self) -> None:
        """Ask those who are there for everything back."""
        for attempt in self.attempts.active():
            attempt.drain()

    def replan(self, job: CopyJob) -> None:
        """Go on with another job; what another task gets is asked back first."""
        self.job = self.resume_points.job = job
        self.lease_granter.on_loss = job.on_loss
        tasks = {partition: n for n, task in enumerate(job.tasks) for partition in task}
        for partition, task in tasks.items():
            place = self.partitions.get(partition)
            if place is None:
                self.partitions[partition] = TrackedPartition(
                    partition, job.remote_partition(partition), task
                )
            else:
                if not place.is_planned and place.lease and place.state is LeaseState.WAITING:
                    self.ledger_cache.record_and_reopen(
                        place
                    )  # long ago perhaps: both logs are looked at again
                place.task = task
        for partition, place in self.partitions.items():
            if partition not in tasks:
                place.task = NO_TASK
        for attempt in self.attempts.active():
            moved = [
                str(place.source)
                for place in self.partitions.values()
                if place.owner == attempt.hello and place.task != attempt.hello.task
            ]
            if moved:
                attempt.send(RevokeLeases(partitions=moved))

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task, those to come too."""
        settings = replace(self.job.settings, bytes_per_s=bytes_per_s)
        self.job = replace(self.job, settings=settings)
        for attempt in self.attempts:
            attempt.send(SetRateLimit(bytes_per_s=bytes_per_s))
