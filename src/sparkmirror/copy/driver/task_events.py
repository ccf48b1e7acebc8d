"""Task events: handles what task attempts send, and releases the partitions of those that end.

Here a partition is released, cleanly or doubtfully (`lease_end_actions`); the conductor
(`conductor`) resolves and grants it again.

Queries no cluster and does not block. Requires the conductor's lock for every method.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sparkmirror.copy.control.messages import (
    ControlMessage,
    EpochEnded,
    Hello,
    LeaseEnded,
    LeaseEndReason,
    ProgressReport,
    RevokeLeases,
    SetRateLimit,
    TaskDone,
    Welcome,
)
from sparkmirror.copy.driver.job_partitions import JobPartitions
from sparkmirror.copy.driver.lease_end_actions import LeaseEndAction, lease_end_action
from sparkmirror.copy.driver.lease_grants import LeaseGranter
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.lost_attempt_receipts import LostAttemptReceipts
from sparkmirror.copy.driver.monitoring.event_log import EventLog
from sparkmirror.copy.driver.offset_translation_publisher import OffsetTranslationPublisher
from sparkmirror.copy.driver.resume.resume_point_finder import ResumePointFinder
from sparkmirror.copy.driver.sharing.worker_group_membership import GroupMembership
from sparkmirror.copy.driver.task_attempts import TaskAttempt, TaskAttempts
from sparkmirror.copy.driver.tracked_partition import (
    MAX_END_AGE_S,
    LeaseState,
    TrackedPartition,
)
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)

T = TypeVar("T")

REVOKE_INTERVAL_S = 0.5
"""How often a worker without membership asks for the leases that no fence ends."""
SAME_CAUSE_S = 1.0
"""Within this time one event stands for all leases without a producer id that end alike."""


@dataclass(slots=True, kw_only=True)
class TaskEventHandler:
    """Follows the task attempts that are connected, and the partitions that they own."""

    job_partitions: JobPartitions
    ledger_cache: LedgerCache
    events: EventLog
    progress: OffsetTranslationPublisher
    resume_points: ResumePointFinder
    lease_granter: LeaseGranter
    pending_receipts: LostAttemptReceipts
    may_fence: Callable[[TopicPartition], bool]
    """Whether a fence stops the owners of a remote partition, as far as known."""
    membership: GroupMembership = field(default_factory=lambda: GroupMembership(is_required=False))
    attempts: TaskAttempts = field(default_factory=TaskAttempts)
    is_draining: bool = False
    _lanes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _lost_attempts: int = 0
    _revoke_at: float = 0.0
    """When `revoke_unfenceable` may ask again."""
    _recent_ends: dict[str, float] = field(default_factory=dict)
    """Why leases without a producer id ended last, and when."""

    @property
    def job(self) -> CopyJob:
        """The current job."""
        return self.job_partitions.job

    @property
    def partitions(self) -> dict[TopicPartition, TrackedPartition]:
        """The partitions of the job, and those that left it and are not given back yet."""
        return self.job_partitions.tracked

    def snapshot(self, now: float, driver_error: str = "") -> CopySnapshot:
        """Return the state of all partitions as of the last reports.

        `driver_error` is why the driver cannot grant leases now; empty if it can.
        """
        silent = self.silent_attempts(now)
        started = {attempt.hello.task for attempt in self.attempts}
        return CopySnapshot(
            partitions=self.job_partitions.views(
                now, silent=silent, started=started, error=driver_error
            ),
            lanes={topic: dict(counts) for topic, counts in self._lanes.items()},
            events=self.events.latest(),
            lost_attempts=self._lost_attempts,
            commits=self.ledger_cache.commit_timer.commits,
        )

    def silent_attempts(self, now: float) -> set[Hello]:
        """Return the attempts that have reported nothing for so long that ends may have moved."""
        return {attempt.hello for attempt in self.attempts.silent_since(now - MAX_END_AGE_S)}

    @property
    def is_drained(self) -> bool:
        """Whether `drain` was called and no partition is leased any more."""
        return self.is_draining and all(
            tracked.state is not LeaseState.LEASED for tracked in self.partitions.values()
        )

    # -- tasks -----------------------------------------------------------------------------------

    def on_joined(self, attempt: TaskAttempt) -> None:
        """Add a task attempt and send its Welcome. An earlier attempt of its task is lost."""
        before = self.attempts.current_for(attempt.hello)
        if before:
            self.on_attempt_lost(before.hello, "another attempt of its task has connected")
        self.attempts.add(attempt)
        self.pending_receipts.on_attempt_started(attempt.hello)
        attempt.send(Welcome(settings=self.job.settings.to_json()))
        if self.is_draining:
            attempt.drain()

    def on_message(self, hello: Hello, message: ControlMessage) -> None:
        """Handle a message of a task attempt. Ignores attempts that are lost."""
        attempt = self.attempts.find(hello)
        if attempt is None:
            return  # its partitions were taken over already
        attempt.last_message_at = time.monotonic()
        match message:
            case ProgressReport():
                self._on_report(hello, message)
            case LeaseEnded():
                self._on_lease_ended(hello, message)
            case EpochEnded():
                self._on_epoch_ended(hello)
            case TaskDone():
                self._on_done(hello)
            case _:
                log.warning(
                    "Task %d: ignored unexpected message %s", hello.task, type(message).__name__
                )

    def show_report(self, hello: Hello, report: ProgressReport) -> None:
        """Apply only what operators see of a report; `on_message` applies all of it later.

        Without membership it also takes leases back: the conductor's thread may wait for a cluster.
        """
        if attempt := self.attempts.find(hello):
            attempt.last_message_at = time.monotonic()
        for tracked, progress in self._owned(hello, report.progress):
            tracked.show_progress(progress)
        if not self.membership.is_valid():
            self.revoke_unfenceable(time.monotonic())

    def _on_report(self, hello: Hello, report: ProgressReport) -> None:
        for topic, counts in report.lanes.items():
            self._lanes[topic].update(counts)
        for tracked, progress in self._owned(hello, report.progress):
            tracked.on_progress(progress)
        for key, source_first, target_first, length in report.runs:
            owned = self._partition_owned_by(hello, key)
            if owned:
                owned.add_run(source_first, target_first, length)
                run = OffsetRun(source_first, target_first, length)
                self.progress.on_copied(owned.source, run)
        self._add_counts(hello, report)

    def _add_counts(self, hello: Hello, report: ProgressReport) -> None:
        for tracked, size in self._owned(hello, report.bytes):
            tracked.bytes += size
        for tracked, ages in self._owned(hello, report.ages):
            tracked.ages.add(ages)
        for tracked, records in self._owned(hello, report.suppressed):
            tracked.suppressed += records
        for tracked, records in self._owned(hello, report.filtered):
            tracked.filtered += records
        for tracked, records in self._owned(hello, report.skipped):
            tracked.skipped += records
        for tracked, counts in self._owned(hello, report.failures):
            tracked.failures = tracked.failures.plus(counts)

    def _on_lease_ended(self, hello: Hello, ended: LeaseEnded) -> None:
        tracked = self._partition_owned_by(hello, ended.partition)
        if tracked is None:
            return
        now = time.monotonic()
        tracked.advance_to(ended.position, ended.expected, ended.records)
        self.pending_receipts.add(hello, tracked)
        tracked.release(clean=ended.is_clean, now=now, is_given_back=True)
        if tracked.is_transactional:
            self._on_transactional_end(hello, tracked)
        elif ended.reason is LeaseEndReason.FENCED and self.job.is_shared:
            tracked.renewals_needed = self.membership.renewals_after_fence()
        if self._is_end_without_event(tracked, ended):
            return
        if ended.message != tracked.last_event_text:
            if not self._is_reported_with_others(tracked, ended, now):
                self.events.publish(ended.reason.value, tracked, ended.message)
            tracked.last_event_text = ended.message
        match lease_end_action(
            ended.reason, is_transaction_doubtful=tracked.is_transaction_doubtful
        ):
            case LeaseEndAction.REOPEN:
                self.ledger_cache.record_and_reopen(tracked)
                tracked.hold(ended.message, now, then=LeaseState.WAITING)
            case LeaseEndAction.RETRY:
                self.lease_granter.invalidate_limits(tracked.target.topic)
                tracked.hold(ended.message, now, then=tracked.state)

    def _is_end_without_event(self, tracked: TrackedPartition, ended: LeaseEnded) -> bool:
        """Whether a lease ended as usual. Applies what the next lease must respect."""
        match ended.reason:
            case LeaseEndReason.CODEC_REFUSED:
                self.lease_granter.avoid_codec(ended.refused_codec, ended.message)
            case LeaseEndReason.TOPIC_WANTED:
                tracked.wanted_topic = ended.wanted_topic
            case LeaseEndReason.CLOSED:
                pass
            case _:
                return False
        return True

    def _is_reported_with_others(
        self, tracked: TrackedPartition, ended: LeaseEnded, now: float
    ) -> bool:
        """Whether an event has just reported the same end of another partition.

        Without a producer id a lost connection ends the leases of all its partitions. The event of
        their takeover counts them.
        """
        assert tracked.lease is not None
        if tracked.lease.is_idempotent or ended.reason is not LeaseEndReason.AMBIGUOUS:
            return False
        recent = {text: at for text, at in self._recent_ends.items() if now - at < SAME_CAUSE_S}
        is_reported = ended.message in recent
        self._recent_ends = {ended.message: now} | recent
        return is_reported

    def _on_transactional_end(self, hello: Hello, tracked: TrackedPartition) -> None:
        """After a clean end everything is committed; else the task needs a new producer."""
        if tracked.state is LeaseState.WAITING:
            self.ledger_cache.record(tracked)
        elif attempt := self.attempts.find(hello):
            attempt.transactional_producer = None

    def on_attempt_lost(self, hello: Hello, reason: str) -> None:
        """Remove a task attempt; its partitions become doubtful."""
        attempt = self.attempts.find(hello)
        if attempt is None:
            return
        self.attempts.remove(hello)
        self._lost_attempts += 1
        attempt.abort(reason)
        now = time.monotonic()
        owned = [tracked for tracked in self.partitions.values() if tracked.owner == hello]
        for tracked in owned:
            self.pending_receipts.add(hello, tracked)
            tracked.release(clean=False, now=now)
        self.pending_receipts.on_attempt_ended(hello)
        if owned:
            log.warning(
                "Task %d (attempt %d) is lost: %s; taking over %d partitions",
                hello.task,
                hello.attempt,
                reason,
                len(owned),
            )

    def on_ids_lost(self, has_fenced: Callable[[int], bool]) -> None:
        """Begin again with the tasks whose transactional ids another conductor has fenced.

        Their attempts give all leases back and then get a new producer. Their partitions wait until
        the worker would know that it has lost them, and get a new resume point.
        """
        for attempt in self.attempts.active():
            if attempt.transactional_producer and not has_fenced(attempt.hello.task):
                attempt.transactional_producer = None
                owned = [
                    str(p.source) for p in self.partitions.values() if p.owner == attempt.hello
                ]
                if owned:
                    attempt.send(RevokeLeases(partitions=owned))
        for tracked in self.partitions.values():
            if has_fenced(tracked.writing_task):
                continue
            if tracked.state is LeaseState.WAITING:
                tracked.give_up(self.membership.renewals_after_fence())
            elif tracked.state is LeaseState.DOUBTFUL:
                tracked.renewals_needed = self.membership.renewals_after_fence()

    def _on_epoch_ended(self, hello: Hello) -> None:
        """Divide the receipts of an attempt that copies on in the next epoch."""
        for tracked in self.partitions.values():
            if tracked.owner == hello:
                self.pending_receipts.add(hello, tracked)
        self.pending_receipts.on_epoch_ended(hello)

    def _on_done(self, hello: Hello) -> None:
        """Remove an attempt that gave everything back; it used no lease granted since then."""
        self.attempts.remove(hello)
        self.pending_receipts.on_attempt_ended(hello)
        now = time.monotonic()
        for tracked in self.partitions.values():
            if tracked.owner == hello:
                tracked.release(clean=True, now=now)

    def expire_silent(self, now: float) -> None:
        """Remove attempts that sent nothing within the task timeout."""
        timeout_s = self.job.task_timeout_s
        for attempt in self.attempts.silent_since(now - timeout_s):
            self.on_attempt_lost(attempt.hello, f"no message for {timeout_s:.0f} s")

    def _owned(self, hello: Hello, by_key: Mapping[str, T]) -> Iterator[tuple[TrackedPartition, T]]:
        """Yield the values of the partitions that an attempt owns."""
        for key, value in by_key.items():
            tracked = self._partition_owned_by(hello, key)
            if tracked:
                yield tracked, value

    def _partition_owned_by(self, hello: Hello, key: str) -> TrackedPartition | None:
        tracked = self.partitions.get(TopicPartition.parse(key))
        return tracked if tracked and tracked.owner == hello else None

    def drain(self) -> None:
        """Ask every attempt for all leases; attempts that connect later get none."""
        self.is_draining = True
        self.end_epoch()

    def end_epoch(self) -> None:
        """Ask the connected attempts for all leases."""
        for attempt in self.attempts.active():
            attempt.drain()

    def drain_tasks(self, tasks: Collection[int]) -> None:
        """Ask the connected attempts of these tasks for all leases."""
        for attempt in self.attempts.active():
            if attempt.hello.task in tasks:
                attempt.drain()

    def replan(self, job: CopyJob) -> None:
        """Continue with another job; revokes the leases that move to another task.

        Another loss policy decides about the halted partitions, too.
        """
        if job.on_loss is not self.job.on_loss:
            self._end_halts()
        self.job_partitions.replan(job)
        self.resume_points.job = job
        self.lease_granter.on_loss = job.on_loss
        self._revoke_moved()

    def _end_halts(self) -> None:
        for halted in [one for one in self.partitions.values() if one.is_halted]:
            halted.end_halt()

    def _revoke_moved(self) -> None:
        """Ask for the leases of partitions that another task must copy."""
        for attempt in self.attempts.active():
            moved = [
                str(tracked.source)
                for tracked in self.partitions.values()
                if tracked.owner == attempt.hello and tracked.task != attempt.hello.task
            ]
            if moved:
                attempt.send(RevokeLeases(partitions=moved))

    def revoke_unfenceable(self, now: float) -> None:
        """Ask for all leases that no fence ends: without a producer id, or without transactions.

        For a worker that is not a member of its group: another one may own the partitions, and
        waits only until the tasks of this one would have stopped by themselves. Asks again after
        `REVOKE_INTERVAL_S`: a grant may have been on its way.
        """
        if now < self._revoke_at:
            return
        self._revoke_at = now + REVOKE_INTERVAL_S
        owned: dict[Hello, list[str]] = defaultdict(list)
        for tracked in self.partitions.values():
            if tracked.owner and self._is_unfenceable(tracked):
                owned[tracked.owner].append(str(tracked.source))
        for attempt in self.attempts.active():
            if keys := owned.get(attempt.hello):
                attempt.send(RevokeLeases(partitions=keys))

    def _is_unfenceable(self, tracked: TrackedPartition) -> bool:
        lease = tracked.lease
        if lease is None or lease.is_transactional:
            return False
        return not (lease.is_idempotent and self.may_fence(lease.target))

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task, including attempts that connect later."""
        settings = replace(self.job.settings, bytes_per_s=bytes_per_s)
        self.job_partitions.job = replace(self.job, settings=settings)
        for attempt in self.attempts:
            attempt.send(SetRateLimit(bytes_per_s=bytes_per_s))
