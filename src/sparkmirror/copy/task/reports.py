"""Reports of a task to the driver: what it copied, and the state of its partitions.

Between two reports it counts acknowledged batches, and joins offset runs that continue each other.
If a filter leaves more runs than the driver can take, a report has fewer and less exact ones
(`mirror.offsets.joined_runs`).
A report leaves out the partitions whose state the driver already has, and a report without news is
sent only every second time. Each report that the driver acknowledges renews the lease, counted from
the moment at which the report was sent. A task without news wakes only for the renewal, or renews
the lease a little earlier when an answer of a broker wakes it.

A report looks at the partitions that have changed since the last one (`changed_partitions`), and at
all of them when a broker is lost or is back: that concerns partitions that nothing else changes.

No connection to a broker: the task passes a function that says which brokers can be reached.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.copy.control.messages import ControlMessage, LeaseProgress, ProgressReport
from sparkmirror.copy.task.changed_partitions import ChangedPartitions
from sparkmirror.copy.task.leased_partition import (
    BrokerReachability,
    LeasedPartition,
    ProgressValues,
    ignore_change,
)
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.receipts.receipt_collector import ReceiptCollector
from sparkmirror.mirror.offsets.joined_runs import join_runs
from sparkmirror.mirror.offsets.run_map import OffsetRun

IDLE_INTERVALS: Final = 2
"""After so many intervals a report is sent that has no news: it renews the lease."""
EARLY_INTERVALS: Final = 0.25
"""A task that is awake renews its lease up to so many intervals before it must."""
FULL_SCAN_INTERVAL_S: Final = 30.0
"""How often a report looks at all partitions. Whatever changes a partition marks it: this only
limits the effect of an omission."""
MAX_RUNS_PER_REPORT: Final = 5_000
"""A report has so many runs, and more only for markers between them, or one for each of more
partitions. The driver needs 9 µs for a run: 5 % of a core for a task that reports every second."""
MAX_RUNS_PER_PARTITION: Final = 1_000
"""So many of them at the most are of one partition: its run map keeps 100,000."""

Run = tuple[str, int, int, int]
"""A partition and an `OffsetRun` of it."""


@dataclass(slots=True)
class ReportCounts:
    """Counts since the last report."""

    runs: list[Run] = field(default_factory=list)
    bytes: Counter[str] = field(default_factory=Counter)
    _last_run: dict[str, int] = field(default_factory=dict)
    """The index in `runs` of the last run of each partition."""

    def add(self, key: str, runs: list[OffsetRun], size: int) -> None:
        """Count an acknowledged batch; join runs that continue each other."""
        for source, target, length in runs:
            index = self._last_run.get(key, -1)
            if index >= 0:
                _, last_source, last_target, last_length = self.runs[index]
                if last_source + last_length == source and last_target + last_length == target:
                    self.runs[index] = (key, last_source, last_target, last_length + length)
                    continue
            self._last_run[key] = len(self.runs)
            self.runs.append((key, source, target, length))
        self.bytes[key] += size

    def bounded_runs(self) -> list[Run]:
        """Return the runs, in order within each partition; joined ones if they are too many."""
        if len(self.runs) <= MAX_RUNS_PER_PARTITION:
            return self.runs
        by_key: dict[str, list[OffsetRun]] = defaultdict(list)
        for key, *run in self.runs:
            by_key[key].append(OffsetRun(*run))
        share = largest_share([len(runs) for runs in by_key.values()], MAX_RUNS_PER_REPORT)
        at_most = min(share, MAX_RUNS_PER_PARTITION)
        return [(key, *run) for key, runs in by_key.items() for run in join_runs(runs, at_most)]


def largest_share(counts: Collection[int], total: int) -> int:
    """Return how many runs a partition may have so that all have `total` together, at least 1.

    Partitions with few runs leave theirs to the others.
    """
    for index, count in enumerate(sorted(counts)):
        share = total // (len(counts) - index)
        if count > share:
            return max(1, share)
        total -= count
    return max(counts)


@dataclass(slots=True)
class TaskReporter:
    """Sends reports and records when the driver acknowledged the last one."""

    interval_s: float
    send: Callable[[ControlMessage], None]
    reachability: Callable[[LeasedPartition], BrokerReachability]
    """Returns whether the brokers of a partition can be reached."""
    reachability_state: Callable[[], object] = lambda: None
    """Returns a value that changes whenever `reachability` of a known partition may change."""
    changed: ChangedPartitions = field(default_factory=ChangedPartitions)
    """The partitions that changed since the last report are among these."""
    lease_renewed_at: float = field(default_factory=time.monotonic)
    """When the last acknowledged report was sent."""
    next_report_at: float = 0.0
    next_turn_at: float = 0.0
    """When a report must be considered although no event arrives."""
    _renew_at: float = 0.0
    """When a report must be sent even if it has no news."""
    receipts: ReceiptCollector = field(default_factory=ReceiptCollector)
    _counts: ReportCounts = field(default_factory=ReportCounts)
    _unacknowledged: deque[float] = field(default_factory=deque)
    """When the reports were sent that the driver has not acknowledged."""
    _reported: dict[str, ProgressValues] = field(default_factory=dict)
    """The last reported state of each partition."""
    _reported_reachability: object | None = field(default_factory=object)
    _full_scan_at: float = 0.0

    def count(self, partition: LeasedPartition, batch: PendingBatch, runs: list[OffsetRun]) -> None:
        """Count a batch that is durable on the target."""
        is_routed = partition.leased is not partition  # run maps are about the remote topic alone
        self._counts.add(partition.key, [] if is_routed else runs, batch.size)
        self.receipts.add(partition.source, partition.target, batch, runs)

    def on_report_ack(self) -> None:
        """Renew the lease from the oldest report that was not acknowledged."""
        if self._unacknowledged:
            self.lease_renewed_at = self._unacknowledged.popleft()

    def send_report_if_due(self, partitions: Collection[LeasedPartition], now: float) -> None:
        """Send a report if the interval has passed and there is news, or the lease is due."""
        may_renew = now >= self._renew_at - EARLY_INTERVALS * self.interval_s
        if now < self.next_report_at and not may_renew:
            self.next_turn_at = self.next_report_at if self._may_have_news else self._renew_at
            return
        self.next_report_at = now + self.interval_s
        report = self._next_report(partitions)
        if may_renew or not report.is_empty:
            self._renew_at = now + IDLE_INTERVALS * self.interval_s
            self._send(report)
        self.next_turn_at = self._renew_at

    def send_report(self, partitions: Collection[LeasedPartition]) -> None:
        """Send what was copied and what changed since the last report."""
        self._send(self._next_report(partitions))

    def forget(self, partition: LeasedPartition) -> None:
        """Forget a partition whose lease is returned."""
        self._reported.pop(partition.key, None)
        self.changed.discard(partition)
        partition.on_change = ignore_change  # an open fetch may still be answered

    def _next_report(self, partitions: Collection[LeasedPartition]) -> ProgressReport:
        counts, self._counts = self._counts, ReportCounts()
        changed = self._maybe_changed(partitions)
        return ProgressReport(
            progress=self._changed_progress(changed),
            runs=counts.bounded_runs(),
            lanes=self._pop_lanes(changed),
            bytes=dict(counts.bytes),
            ages={p.key: p.pop_ages() for p in changed if p.has_ages},
            suppressed={p.key: p.pop_suppressed() for p in changed if p.suppressed},
            filtered={p.key: p.pop_filtered() for p in changed if p.converter.filtered},
            skipped={p.key: p.pop_skipped() for p in changed if p.converter.skipped},
            failures={p.key: p.pop_failures() for p in changed if p.has_failures},
        )

    @property
    def _may_have_news(self) -> bool:
        """Whether something happened since the last report that may belong into the next one."""
        return (
            self.changed.has_unreported
            or bool(self._counts.runs)
            or self.reachability_state() != self._reported_reachability
        )

    def _maybe_changed(self, partitions: Collection[LeasedPartition]) -> list[LeasedPartition]:
        """Return the changed partitions; all of them if a broker was lost or is back."""
        now, state = time.monotonic(), self.reachability_state()
        if now >= self._full_scan_at or state != self._reported_reachability:
            self._full_scan_at, self._reported_reachability = now + FULL_SCAN_INTERVAL_S, state
            for partition in partitions:
                self.changed.add(partition)
        return self.changed.pop_unreported()

    def _send(self, report: ProgressReport) -> None:
        self._unacknowledged.append(time.monotonic())
        self.send(report)

    def _pop_lanes(self, partitions: Collection[LeasedPartition]) -> dict[str, dict[str, int]]:
        """Return batch counts by topic and lane reason since the last report."""
        lanes: dict[str, Counter[str]] = defaultdict(Counter)
        for partition in partitions:
            if partition.converter.lanes:
                popped = partition.converter.pop_lanes()
                counts = {reason.value: n for reason, n in popped.items()}
                lanes[partition.source.topic].update(counts)
                self.receipts.count_lanes(partition.source, counts)
        return {topic: dict(counts) for topic, counts in lanes.items()}

    def _changed_progress(
        self, partitions: Collection[LeasedPartition]
    ) -> dict[str, LeaseProgress]:
        """Return the state of those partitions that changed since the last report."""
        changed: dict[str, LeaseProgress] = {}
        for partition in partitions:
            values = partition.progress_values(self.reachability(partition))
            if self._reported.get(partition.key) != values:
                self._reported[partition.key] = values
                changed[partition.key] = values.to_progress()
        return changed
