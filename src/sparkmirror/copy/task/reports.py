"""Reports of a task: what it has copied and where its partitions stand, and how long it may go on.

Counts acknowledged parcels between two reports, as runs that continue one another, and leaves out
of a report what the driver has been told before. A report that is answered by a beat renews the
lease, from the moment at which the report was sent: after that, silence counts.

Knows no broker; what keeps a partition's brokers away is asked of whoever knows.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sparkmirror.copy.control.messages import ControlMessage, LeaseProgress, ProgressReport
from sparkmirror.copy.receipt import ReceiptCollector
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.mirror.offsets.run_map import OffsetRun


@dataclass(slots=True)
class ReportCounts:
    """What happened since the last report."""

    runs: list[tuple[str, int, int, int]] = field(default_factory=list)
    bytes: Counter[str] = field(default_factory=Counter)
    _last_run: dict[str, int] = field(default_factory=dict)
    """Where in `runs` the last one of each partition stands."""

    def add(self, key: str, runs: list[OffsetRun], size: int) -> None:
        """Count an acknowledged parcel; runs that continue one another are told as one."""
        for source, target, length in runs:
            place = self._last_run.get(key, -1)
            if place >= 0:
                _, first, at, before = self.runs[place]
                if first + before == source and at + before == target:
                    self.runs[place] = (key, first, at, before + length)
                    continue
            self._last_run[key] = len(self.runs)
            self.runs.append((key, source, target, length))
        self.bytes[key] += size


@dataclass(slots=True)
class TaskReporter:
    """Tells the driver, and hears from it that it listens."""

    interval_s: float
    send: Callable[[ControlMessage], None]
    connection_error: Callable[[LeasedPartition], str]
    """Why a partition's brokers cannot be talked to; empty if they can."""
    lease_renewed_at: float = field(default_factory=time.monotonic)
    """When the last report was sent that the driver has heard."""
    next_report_at: float = 0.0
    receipts: ReceiptCollector = field(default_factory=ReceiptCollector)
    _counts: ReportCounts = field(default_factory=ReportCounts)
    _unacknowledged: deque[float] = field(default_factory=deque)
    """When the reports were sent that no beat has answered yet."""
    _reported: dict[str, LeaseProgress] = field(default_factory=dict)
    """What the driver knows of each partition."""

    def count_copied(
        self, course: LeasedPartition, parcel: PendingBatch, runs: list[OffsetRun]
    ) -> None:
        """Count what is on the target for good."""
        self._counts.add(course.key, runs, parcel.size)
        self.receipts.add(course.queue.lease, parcel, runs)

    def on_report_ack(self) -> None:
        """The driver has heard the oldest report that it had not answered."""
        if self._unacknowledged:
            self.lease_renewed_at = self._unacknowledged.popleft()

    def send_report_if_due(self, courses: Collection[LeasedPartition], now: float) -> None:
        """Report, if it is time to."""
        if now >= self.next_report_at:
            self.next_report_at = now + self.interval_s
            self.send_report(courses)

    def send_report(self, courses: Collection[LeasedPartition]) -> None:
        """Tell what was copied since the last report, and what has changed."""
        tally, self._counts = self._counts, ReportCounts()
        self._unacknowledged.append(time.monotonic())
        self.send(
            ProgressReport(
                progress=self._changed_progress(courses),
                runs=tally.runs,
                lanes=self._pop_lanes(courses),
                bytes=dict(tally.bytes),
            )
        )

    def _pop_lanes(self, courses: Collection[LeasedPartition]) -> dict[str, dict[str, int]]:
        """Batches by topic and reason of their lane, since the last report."""
        lanes: dict[str, Counter[str]] = defaultdict(Counter)
        for course in courses:
            counted = {reason.value: n for reason, n in course.converter.pop_lanes().items()}
            if counted:
                source = course.queue.lease.source
                lanes[source.topic].update(counted)
                self.receipts.count_lanes(source, counted)
        return {topic: dict(counts) for topic, counts in lanes.items()}

    def _changed_progress(self, courses: Collection[LeasedPartition]) -> dict[str, LeaseProgress]:
        """Where partitions stand, those that were told the same before left out."""
        standings = {
            course.key: course.progress(self.connection_error(course)) for course in courses
        }
        changed = {key: one for key, one in standings.items() if self._reported.get(key) != one}
        self._reported = standings
        return changed
