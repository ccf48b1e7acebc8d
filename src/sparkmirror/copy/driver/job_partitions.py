"""The partitions of a job as the driver tracks them, and those that leave it.

A partition that leaves the job stays until its owner has given it back and its ledger entry is
closed. Queries no cluster and does not block. Requires the conductor's lock for every method.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.offset_translation_publisher import OffsetTranslationPublisher
from sparkmirror.copy.driver.tracked_partition import (
    MAX_END_AGE_S,
    LeaseState,
    TrackedPartition,
)
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.lease import NO_TASK
from sparkmirror.copy.snapshot import PartitionView
from sparkmirror.model import TopicPartition


def waiting_reason(
    tracked: TrackedPartition, now: float, *, is_task_started: bool, error: str
) -> str:
    """Return why a partition without an owner waits; empty while it changes owners.

    `error` is why the driver cannot grant leases now.
    """
    if tracked.state is LeaseState.LEASED:
        return ""
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
class JobPartitions:
    """Tracks the partitions of a job."""

    job: CopyJob
    ledger_cache: LedgerCache
    progress: OffsetTranslationPublisher
    tracked: dict[TopicPartition, TrackedPartition] = field(init=False)

    def __post_init__(self) -> None:
        self.tracked = {
            partition: TrackedPartition(partition, self.job.remote_partition(partition), task)
            for partition, task in self.job.task_of_partition().items()
        }

    def views(
        self, now: float, *, silent: Collection[Hello], started: Collection[int], error: str
    ) -> dict[str, PartitionView]:
        """Return what operators see of each partition.

        `silent` attempts have sent nothing for some time, `started` tasks have an attempt, `error`
        is why the driver cannot grant leases now.
        """
        return {
            str(partition): tracked.view(
                now,
                is_owner_silent=bool(silent) and tracked.owner in silent,
                default_reason=waiting_reason(
                    tracked, now, is_task_started=tracked.task in started, error=error
                ),
            )
            for partition, tracked in self.tracked.items()
            if tracked.is_planned or self._is_being_given_back(tracked)
        }

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

    def unsettled(self) -> list[TrackedPartition]:
        """Return the partitions with which the conductor may have something to do.

        All others are in the job and leased, and have their run maps: only a message of their
        owner, its silence or another job changes them.
        """
        return [
            tracked
            for tracked in self.tracked.values()
            if tracked.state is not LeaseState.LEASED
            or tracked.needs_run_map
            or tracked.task == NO_TASK
        ]

    def forget_unplanned(self, partitions: Iterable[TrackedPartition]) -> None:
        """Forget those that left the job: another conductor has them now, or will fence them."""
        for tracked in partitions:
            if not tracked.is_planned and not self._is_being_given_back(tracked):
                del self.tracked[tracked.source]
                self.progress.forget(tracked.source)

    def replan(self, job: CopyJob) -> None:
        """Continue with another job. A partition that left the job has no task."""
        self.job = job
        tasks = job.task_of_partition()
        for partition, task in tasks.items():
            tracked = self.tracked.get(partition)
            if tracked is None:
                self.tracked[partition] = TrackedPartition(
                    partition, job.remote_partition(partition), task
                )
            else:
                if not tracked.is_planned:
                    self._take_back(tracked)
                tracked.task = task
        for partition, tracked in self.tracked.items():
            if partition not in tasks:
                tracked.task = NO_TASK

    def _take_back(self, tracked: TrackedPartition) -> None:
        """Query both logs again for a partition that may have been out of the job for long."""
        tracked.fenced_entry = None
        if tracked.state is LeaseState.LEASED or tracked.lease is None:
            return
        if self.job.is_shared:  # another conductor may have had it: the ledger says how far it came
            tracked.state, tracked.needs_resume_point = LeaseState.WAITING, True
        elif tracked.state is LeaseState.WAITING:
            self.ledger_cache.record_and_reopen(tracked)
