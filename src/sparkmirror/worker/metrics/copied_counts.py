"""What the drivers of one source connector have copied, by topic or partition. No threads.

A driver counts from its own start. The worker adds up what each status has more than the one
before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from sparkmirror.copy.lease import NO_TASK
from sparkmirror.copy.offset_commits import OffsetCommits
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.metrics.sampled_stat import MetricConfig, SampledStat, Values
from sparkmirror.model import TopicPartition
from sparkmirror.worker.metrics.age_stats import AgeStats
from sparkmirror.worker.metrics.metrics_settings import MetricsDetail, MetricsSettings
from sparkmirror.worker.metrics.task_counts import TaskCountsByNumber
from sparkmirror.worker.metrics.time_lag import TimeLags
from sparkmirror.worker.metrics.topic_labels import WHOLE_TOPIC


class CopiedCounts:
    """What was copied of one topic, or of one partition."""

    def __init__(self, config: MetricConfig) -> None:
        self.records = 0
        self.bytes = 0
        self.last_progress_s: float | None = None
        """In Unix time; None before the first progress."""
        self.record_rate = SampledStat(config)
        self.byte_rate = SampledStat(config)
        self.position_rate = SampledStat(config)
        self.end_rate = SampledStat(config)
        self.record_age = AgeStats(config)
        self.replication_latency = AgeStats(config)


class ConnectorCounts:
    """What was copied of all partitions of one source connector."""

    def __init__(self, settings: MetricsSettings) -> None:
        self._settings = settings
        self._planned: frozenset[str] = frozenset()
        self._latest: Mapping[str, PartitionView] = {}
        """The partitions of the latest snapshot since the plan."""
        self._counts: dict[TopicPartition, CopiedCounts] = {}
        self._views: dict[str, PartitionView] = {}
        """The latest view of each partition that has a position."""
        self._copied: dict[str, tuple[int, int]] = {}
        """The records and bytes of each partition in the latest status that had it. A driver may
        report a partition for a moment after the plan has lost it, or has it again."""
        self._aged: dict[TopicPartition, PartitionView] = {}
        """The latest view of each partition, for ages and records that were not sent."""
        self._lanes: Mapping[str, Mapping[str, int]] = {}
        self.lane_batches: Counter[tuple[str, str]] = Counter()
        """Batches by topic and reason."""
        self.tasks = TaskCountsByNumber(settings.window)
        self.suppressed: Counter[str] = Counter()
        """Records that were not sent again, by topic."""
        self.filtered: Counter[str] = Counter()
        """Records that transformations have dropped, by topic."""
        self.time_lags = TimeLags()
        self._snapshot_s = 0.0
        """When the latest snapshot came, in Unix time."""
        self.lost_attempts = 0
        self._lost_attempts = 0
        self.commit_times = SampledStat(settings.window)
        self.commit_outcomes = SampledStat(settings.window)
        """1 for each write of source offsets that succeeded, 0 for one that failed."""
        self._commits = OffsetCommits()

    def on_plan(self, partitions: Mapping[TopicPartition, int]) -> None:
        """Begin with zero for new partitions; forget those that are not planned any more."""
        self._planned, self._latest = frozenset(map(str, partitions)), {}
        self._views = {key: view for key, view in self._views.items() if key in self._planned}
        self.time_lags.keep(self._planned)
        self.tasks.on_plan(set(partitions.values()))
        before = self._counts
        self._counts = {
            key: before.get(key) or CopiedCounts(self._settings.window)
            for key in map(self.key, partitions)
        }

    def key(self, partition: TopicPartition) -> TopicPartition:
        """Return what the figures of a partition belong to: its topic, or itself."""
        if self._settings.detail is MetricsDetail.PARTITION:
            return partition
        return TopicPartition(partition.topic, WHOLE_TOPIC)

    def counts(self) -> Mapping[TopicPartition, CopiedCounts]:
        """Return what was copied, by topic or partition."""
        return self._counts

    def on_snapshot(self, snapshot: CopySnapshot, now_ms: float, wall_s: float) -> None:
        """Add what a driver has copied since its snapshot before."""
        before, self._latest = self._latest, snapshot.partitions
        for name, view in snapshot.partitions.items():
            # A snapshot has the same view again of a partition that has not changed.
            if view is not before.get(name) and name in self._planned:
                partition = TopicPartition.parse(name)
                counts = self._counts[self.key(partition)]
                self.time_lags.on_view(name, before.get(name), view, self._snapshot_s, wall_s)
                self.tasks.on_view(before.get(name), view)
                self._add_copied(counts, name, view, now_ms)
                self._add_ages(counts, partition, view, now_ms)
                if view.position >= 0:
                    self._add_progress(counts, name, view, now_ms, wall_s)
        self.tasks.on_report(now_ms)
        self._add_lanes(snapshot.lanes)
        self._add_commits(snapshot.commits, now_ms)
        self.lost_attempts += _increase(self._lost_attempts, snapshot.lost_attempts)
        self._lost_attempts, self._snapshot_s = snapshot.lost_attempts, wall_s

    def _add_copied(
        self, counts: CopiedCounts, name: str, view: PartitionView, now_ms: float
    ) -> None:
        records_before, bytes_before = self._copied.get(name, (0, 0))
        self._copied[name] = (view.copied, view.bytes)
        records, size = _increase(records_before, view.copied), _increase(bytes_before, view.bytes)
        if records:
            counts.records += records
            counts.record_rate.record(records, now_ms)
        if size:
            counts.bytes += size
            counts.byte_rate.record(size, now_ms)
        self.tasks.add_copied(view.task, records, size, now_ms)

    def _add_ages(
        self, counts: CopiedCounts, partition: TopicPartition, view: PartitionView, now_ms: float
    ) -> None:
        seen, self._aged[partition] = self._aged.get(partition, _UNSEEN), view
        before = seen.ages
        self.suppressed[partition.topic] += _increase(seen.suppressed, view.suppressed)
        filtered = _increase(seen.filtered, view.filtered)
        self.filtered[partition.topic] += filtered
        skipped = _increase(seen.skipped, view.skipped)
        self.tasks.add_skipped(view.task, skipped)
        self.tasks.add_failures(view.task, view.failures.increase_since(seen.failures))
        # Ages are those of records that are sent.
        sent = _increase(before.fetched.records, view.ages.fetched.records)
        self.tasks.add_fetched(view.task, sent + filtered + skipped, now_ms)
        counts.record_age.add(before.fetched, view.ages.fetched, now_ms)
        counts.replication_latency.add(before.acknowledged, view.ages.acknowledged, now_ms)

    def _add_commits(self, commits: OffsetCommits, now_ms: float) -> None:
        before, self._commits = self._commits, commits
        if commits.successes < before.successes or commits.failures < before.failures:
            before = OffsetCommits()  # of another driver
        count = commits.successes - before.successes
        failures = commits.failures - before.failures
        if count or failures:
            outcomes = Values(count + failures, count, float(not failures), float(bool(count)))
            self.commit_outcomes.record_many(outcomes, now_ms)
        if count:
            total_ms = commits.total_ms - before.total_ms
            values = Values(count, total_ms, total_ms / count, commits.max_ms)
            self.commit_times.record_many(values, now_ms)

    def _add_progress(
        self, counts: CopiedCounts, name: str, view: PartitionView, now_ms: float, wall_s: float
    ) -> None:
        before, self._views[name] = self._views.get(name), view
        moved = view.copied if before is None else view.position - before.position
        # A position that moves without a copied or dropped record was set: by the policy for
        # losses, or by an operator.
        if moved > 0 and (before is None or _handled(view) != _handled(before)):
            counts.position_rate.record(moved, now_ms)
            counts.last_progress_s = wall_s
        if before is not None and 0 <= before.end < view.end:
            counts.end_rate.record(view.end - before.end, now_ms)

    def _add_lanes(self, lanes: Mapping[str, Mapping[str, int]]) -> None:
        before, self._lanes = self._lanes, lanes
        for topic, batches in lanes.items():
            for reason, count in batches.items():
                earlier = before.get(topic, {}).get(reason, 0)
                self.lane_batches[topic, reason] += _increase(earlier, count)


_UNSEEN: Final = PartitionView(remote="", task=NO_TASK, state="")


def _handled(view: PartitionView) -> tuple[int, int, int]:
    """What has become of the records of a partition: copied, dropped or skipped."""
    return view.copied, view.filtered, view.skipped


def _increase(before: int, now: int) -> int:
    """Return how much a count has grown. A lower count is that of another driver."""
    return now - before if now >= before else now
