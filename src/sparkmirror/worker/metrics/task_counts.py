"""What each task of one source connector has fetched and copied. No threads, no clock."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection

from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.lease import NO_TASK
from sparkmirror.copy.snapshot import PartitionView
from sparkmirror.metrics.sampled_stat import MetricConfig, SampledStat


class TaskCounts:
    """What one task has fetched and copied since the worker started."""

    def __init__(self, config: MetricConfig) -> None:
        self.fetched = 0
        self.skipped = 0
        """Records that failed in a transformation and are not copied."""
        self.failures = FailureCounts()
        """What was logged and written about them."""
        self.records = 0
        self.bytes = 0
        self.fetch_rate = SampledStat(config)
        self.record_rate = SampledStat(config)
        self.byte_rate = SampledStat(config)
        self.active = SampledStat(config)
        """Records that were fetched and not acknowledged, report by report."""


class TaskCountsByNumber:
    """The tasks of one connector."""

    def __init__(self, config: MetricConfig) -> None:
        self._tasks: defaultdict[int, TaskCounts] = defaultdict(lambda: TaskCounts(config))
        self._planned: Collection[int] = ()
        self._active: Counter[int] = Counter()

    def __getitem__(self, task: int) -> TaskCounts:
        return self._tasks[task]

    def on_plan(self, tasks: Collection[int]) -> None:
        """These tasks have partitions from now on. The next report has every view again."""
        self._planned = frozenset(tasks)
        self._active.clear()

    def add_fetched(self, task: int, records: int, now_ms: float) -> None:
        if records and task != NO_TASK:
            self._tasks[task].fetched += records
            self._tasks[task].fetch_rate.record(records, now_ms)

    def add_skipped(self, task: int, records: int) -> None:
        """Add records that failed in a transformation and are not copied."""
        if records and task != NO_TASK:
            self._tasks[task].skipped += records

    def add_failures(self, task: int, counts: FailureCounts) -> None:
        """Add what was logged and written about such records."""
        if any(counts) and task != NO_TASK:
            self._tasks[task].failures = self._tasks[task].failures.plus(counts)

    def add_copied(self, task: int, records: int, size: int, now_ms: float) -> None:
        """Add records and bytes that the target has acknowledged."""
        if task == NO_TASK:
            return
        counts = self._tasks[task]
        counts.records += records
        counts.bytes += size
        if records:
            counts.record_rate.record(records, now_ms)
        if size:
            counts.byte_rate.record(size, now_ms)

    def on_view(self, before: PartitionView | None, view: PartitionView) -> None:
        """A report has another view of a partition."""
        if before is not None:
            self._active[before.task] -= before.active
        self._active[view.task] += view.active

    def on_report(self, now_ms: float) -> None:
        """All views of a report were read."""
        for task in self._planned:
            self._tasks[task].active.record(self._active[task], now_ms)
