"""Task events: handles what task attempts send, and releases the partitions of those that end.

Here a partition is released, cleanly or doubtfully; the conductor (`conductor`) resolves and grants
it again.

    a lease ended because              what follows
    closed                             waiting: the next owner continues
    out-of-range, source-gone,         held, then waiting with a new resume point; doubtful if the
    target-gone                        last transaction is doubtful
    refused, not-authorized            held; the limits of the remote topic are queried again
    ambiguous, fenced                  waiting after a clean end, else doubtful

Queries no cluster and does not block. Requires the conductor's lock for every method.
"""

from __future__ import annotations

import enum
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
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
from sparkmirror.copy.driver.sharing.membership import GroupMembership
from sparkmirror.copy.driver.task_attempts import TaskAttempt, TaskAttempts
from sparkmirror.copy.driver.tracked_partition import (
    MAX_END_AGE_S,
    LeaseState,
    TrackedPartition,
)
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.lease import NO_TASK
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)


class LeaseEndAction(enum.Enum):
    """What the driver does after a lease has ended and the partition is released."""

    NOTHING = enum.auto()
    REOPEN = enum.auto()
    """Hold it, then find a new resume point."""
    RETRY = enum.auto()
    """Query the target limits again, hold it, then keep its state."""


def lease_end_action(reason: LeaseEndReason, *, is_transaction_doubtful: bool) -> LeaseEndAction:
    """Decide by the table of this module."""
    match reason:
        case LeaseEndReason.OUT_OF_RANGE | LeaseEndReason.SOURCE_GONE | LeaseEndReason.TARGET_GONE:
            return LeaseEndAction.NOTHING if is_transaction_doubtful else LeaseEndAction.REOPEN
        case LeaseEndReason.REFUSED | LeaseEndReason.NOT_AUTHORIZED:
            return LeaseEndAction.RETRY
        case LeaseEndReason.CLOSED | LeaseEndReason.AMBIGUOUS | LeaseEndReason.FENCED:
            return LeaseEndAction.NOTHING


def waiting_reason(
    tracked: TrackedPartition, now: float, *, is_task_started: bool, error: str
) -> str:
    """Return why a partition without an owner waits; empty while it changes owners.

    `error` is why the driver cannot grant leases now.
    """
    has_waited = tracked.last_owner is None or now - tracked.waiting_since > MAX_END_AGE_S
    match tracked.state:
        case LeaseState.WAITING | LeaseState.DOUBTFUL if error:
            return error
        case LeaseState.WAITING if has_waited and not is_task_started:
            return f"Spark has not started task {tracked.task} yet"
        case LeaseState.WAITING if has_waited:
            return "the driver asks both clusters where to continue"
        case LeaseState.DOUBTFUL if has_waited:
            return "its last task did not end cleanly; the driver compares both logs"
        case _:
            return ""


@dataclass(slots=True, kw_only=True)
class TaskEventHandler:
    """Tracks the partitions of a job and the task attempts that are connected."""

    job: CopyJob
    ledger_cache: LedgerCache
    events: EventLog
    progress: ProgressPublisher
    resume_points: ResumePointFinder
    lease_granter: LeaseGranter
    pending_receipts: PendingReceipts
    membership: GroupMembership = field(default_factory=lambda: GroupMembership(is_required=False))
    attempts: TaskAttempts = field(default_factory=TaskAttempts)
    partitions: dict[TopicPartition, TrackedPartition] = field(init=False)
    is_draining: bool = False
    _lanes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def __post_init__(self) -> None:
        self.partitions = {
            partition: TrackedPartition(partition, self.job.remote_partition(partition), task)
            for partition, task in self.job.task_of_partition().items()
        }

    def snapshot(self, now: float, driver_error: str = "") -> CopySnapshot:
        """Return the state of all partitions as of the last reports.

        `driver_error` is why the driver cannot grant leases now; empty if it can.
        """
        silent = {attempt.hello for attempt in self.attempts.silent_since(now - MAX_END_AGE_S)}
        started = {attempt.hello.task for attempt in self.attempts}
        return CopySnapshot(
            partitions={
                str(partition): tracked.view(
                    now,
                    is_owner_silent=tracked.owner in silent,
                    default_reason=waiting_reason(
                        tracked, now, is_task_started=tracked.task in started, error=driver_error
                    ),
                )
                for partition, tracked in self.partitions.items()
                if tracked.is_planned or self._is_being_given_back(tracked)
            },
            lanes={topic: dict(counts) for topic, counts in self._lanes.items()},
            events=self.events.latest(),
        )

    @property
    def is_drained(self) -> bool:
        """Whether `drain` was called and no partition is leased any more."""
        return self.is_draining and all(
            tracked.state is not LeaseState.LEASED for tracked in self.partitions.values()
        )

    def _is_being_given_back(self, tracked: TrackedPartition) -> bool:
        """Whether a partition that left the job is still leased, or its entry still open."""
        is_unwritten = (
            tracked.state is LeaseState.WAITING
            and tracked.is_dirty
            and not tracked.needs_resume_point  # another conductor has it: its entry stays
        )
        return tracked.state is LeaseState.LEASED or (
            self.job.is_shared and is_unwritten and not tracked.is_transactional
        )

    def returned(self) -> list[TrackedPartition]:
        """Return the partitions that left the job, and whose last owner gave them back."""
        return [
            tracked
            for tracked in self.partitions.values()
            if not tracked.is_planned and tracked.state is LeaseState.WAITING
        ]

    def forget_unplanned(self) -> None:
        """Forget what left the job: another conductor has it now, or will fence it."""
        for tracked in list(self.partitions.values()):
            if not tracked.is_planned and not self._is_being_given_back(tracked):
                del self.partitions[tracked.source]
                self.progress.forget(tracked.source)

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
            case TaskDone():
                self._on_done(hello)
            case _:
                log.warning(
                    "Task %d: ignored unexpected message %s", hello.task, type(message).__name__
                )

    def show_report(self, hello: Hello, report: ProgressReport) -> None:
        """Apply only what operators see of a report; `on_message` applies all of it later."""
        if attempt := self.attempts.find(hello):
            attempt.last_message_at = time.monotonic()
        for key, progress in report.progress.items():
            tracked = self._partition_owned_by(hello, key)
            if tracked:
                tracked.show_progress(progress)

    def _on_report(self, hello: Hello, report: ProgressReport) -> None:
        for topic, counts in report.lanes.items():
            self._lanes[topic].update(counts)
        for key, progress in report.progress.items():
            tracked = self._partition_owned_by(hello, key)
            if tracked:
                tracked.on_progress(progress)
        for key, source_first, target_first, length in report.runs:
            tracked = self._partition_owned_by(hello, key)
            if tracked:
                tracked.add_run(source_first, target_first, length)
                run = OffsetRun(source_first, target_first, length)
                self.progress.on_copied(tracked.source, run)
        for key, size in report.bytes.items():
            tracked = self._partition_owned_by(hello, key)
            if tracked:
                tracked.bytes += size

    def _on_lease_ended(self, hello: Hello, ended: LeaseEnded) -> None:
        tracked = self._partition_owned_by(hello, ended.partition)
        if tracked is None:
            return
        now = time.monotonic()
        tracked.advance_to(ended.position, ended.expected, ended.records)
        self.pending_receipts.add(hello, tracked)
        tracked.release(clean=ended.is_clean, now=now)
        if tracked.is_transactional:
            self._on_transactional_end(hello, tracked)
        elif ended.reason is LeaseEndReason.FENCED and self.job.is_shared:
            tracked.renewals_needed = self.membership.renewals_after_fence()
        if ended.reason is LeaseEndReason.CLOSED:
            return
        if ended.message != tracked.last_event_text:
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
        attempt.abort(reason)
        now = time.monotonic()
        owned = [tracked for tracked in self.partitions.values() if tracked.owner == hello]
        for tracked in owned:
            self.pending_receipts.add(hello, tracked)
            tracked.release(clean=False, now=now)
        self.pending_receipts.on_attempt_lost(hello)
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

    def _on_done(self, hello: Hello) -> None:
        """Remove an attempt that gave everything back; it used no lease granted since then."""
        self.attempts.remove(hello)
        self.pending_receipts.on_attempt_done(hello)
        now = time.monotonic()
        for tracked in self.partitions.values():
            if tracked.owner == hello:
                tracked.release(clean=True, now=now)

    def expire_silent(self, now: float) -> None:
        """Remove attempts that sent nothing within the task timeout."""
        timeout_s = self.job.task_timeout_s
        for attempt in self.attempts.silent_since(now - timeout_s):
            self.on_attempt_lost(attempt.hello, f"no message for {timeout_s:.0f} s")

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
        self.job = self.resume_points.job = job
        self.lease_granter.on_loss = job.on_loss
        tasks = job.task_of_partition()
        for partition, task in tasks.items():
            tracked = self.partitions.get(partition)
            if tracked is None:
                self.partitions[partition] = TrackedPartition(
                    partition, job.remote_partition(partition), task
                )
            else:
                if not tracked.is_planned:
                    self._take_back(tracked)
                tracked.task = task
        for partition, tracked in self.partitions.items():
            if partition not in tasks:
                tracked.task = NO_TASK
        self._revoke_moved()

    def _take_back(self, tracked: TrackedPartition) -> None:
        """Query both logs again for a partition that may have been out of the job for long."""
        if tracked.state is LeaseState.LEASED or tracked.lease is None:
            return
        if self.job.is_shared:  # another conductor may have had it: the ledger says how far it came
            tracked.state, tracked.needs_resume_point = LeaseState.WAITING, True
        elif tracked.state is LeaseState.WAITING:
            self.ledger_cache.record_and_reopen(tracked)

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

    def set_rate(self, bytes_per_s: int) -> None:
        """Limit every task, including attempts that connect later."""
        settings = replace(self.job.settings, bytes_per_s=bytes_per_s)
        self.job = replace(self.job, settings=settings)
        for attempt in self.attempts:
            attempt.send(SetRateLimit(bytes_per_s=bytes_per_s))
