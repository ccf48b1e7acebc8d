"""The figures of one source connector. No threads, no clock."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.driver.tracked_partition import LeaseState
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopyEvent, PartitionView
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus
from sparkmirror.metrics import mirror_metrics, sparkmirror_metrics
from sparkmirror.metrics.definition import Figure, MetricDefinition
from sparkmirror.metrics.jmx_quoting import jmx_sanitize
from sparkmirror.model import TopicPartition
from sparkmirror.worker.metrics.copied_counts import ConnectorCounts, CopiedCounts
from sparkmirror.worker.metrics.metrics_settings import MetricsSettings
from sparkmirror.worker.metrics.source_task_figures import SourceTasks
from sparkmirror.worker.metrics.topic_labels import topic_labels

_COPYING = (DriverPhase.STARTING, DriverPhase.RUNNING, DriverPhase.DRAINING)
"""Phases with figures of this driver. A status with another phase repeats those of a dead one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The same moment by both clocks."""

    monotonic_ms: float
    wall_s: float


class SourceFigures:
    """What the worker knows of one source connector, as figures."""

    def __init__(self, connector: str, settings: MetricsSettings) -> None:
        """`connector` is the name that REST shows."""
        self._name = connector
        self._connector = jmx_sanitize(connector)
        self._counts = ConnectorCounts(settings)
        self._job: CopyJob | None = None
        self._phase = DriverPhase.STARTING
        self._driver_restarts = 0
        self._events: Counter[tuple[str, str]] = Counter()
        self._failures: Counter[int] = Counter()
        """How often a record stopped a partition, by task."""
        self._last_failures_ms: dict[int, int] = {}
        self._lost_records: Counter[tuple[str, str]] = Counter()
        self._lost_to: dict[tuple[str, str, int], int] = {}
        """The ends of the losses that are counted, by partition, kind and first offset. Each new
        driver reports the loss of a halted partition again."""

    def on_plan(self, job: CopyJob) -> None:
        """The connector has the partitions of this job here."""
        self._job = job
        self._counts.on_plan(job.task_of_partition())

    def clients(self) -> dict[str, Mapping[str, str]]:
        """Return the client properties of both clusters, by alias; none before the first plan."""
        if self._job is None:
            return {}
        settings = self._job.settings
        return {settings.source_alias: settings.source, settings.target_alias: settings.target}

    def on_status(self, status: DriverStatus, now_ms: float, wall_s: float) -> None:
        """Add what the driver has copied since its status before."""
        before, self._phase = self._phase, status.phase
        if status.phase is DriverPhase.RESTARTING and before is not DriverPhase.RESTARTING:
            self._driver_restarts += 1
        if status.phase in _COPYING:
            self._counts.on_snapshot(status.snapshot, now_ms, wall_s)

    def on_events(self, events: Iterable[CopyEvent]) -> None:
        """Count events that are new."""
        tasks = self._job.task_of_partition() if self._job else {}
        for event in events:
            partition = TopicPartition.parse(event.partition)
            key = partition.topic, event.kind
            self._events[key] += 1
            if event.kind == LeaseEndReason.REFUSED and partition in tasks:
                self._failures[tasks[partition]] += 1
                self._last_failures_ms[tasks[partition]] = event.at_ms
            loss = event.partition, event.kind, event.lost_from
            known_to = self._lost_to.get(loss, event.lost_from)
            if event.lost_from >= 0 and known_to < event.lost_to:
                self._lost_records[key] += event.lost_to - known_to
                self._lost_to[loss] = event.lost_to

    def figures(self, views: Mapping[str, PartitionView], now: Moment) -> Iterator[Figure]:
        """Yield all figures. `views` are the partitions as the worker shows them now."""
        if self._job is None:
            return
        found = {TopicPartition.parse(name): view for name, view in views.items()}
        by_key: defaultdict[TopicPartition, dict[str, PartitionView]] = defaultdict(dict)
        for partition, view in sorted(found.items()):
            by_key[self._counts.key(partition)][str(partition)] = view
        for key, counts in sorted(self._counts.counts().items()):
            yield from self._copied_figures(key, counts, now.monotonic_ms)
            yield from self._lag_figures(key, by_key[key], counts, now)
        tasks = SourceTasks(
            connector=self._name,
            job=self._job,
            counts=self._counts,
            failures=self._failures,
            last_failures_ms=self._last_failures_ms,
        )
        yield from tasks.figures(found, now.monotonic_ms)
        yield from self._topic_figures(found)
        yield from self._counter_figures()

    def _copied_figures(
        self, key: TopicPartition, counts: CopiedCounts, now_ms: float
    ) -> Iterator[Figure]:
        assert self._job is not None
        remote = TopicPartition(self._job.remote_topics[key.topic], key.partition)
        labels = {name: self._flow()[name] for name in ("source", "target")} | topic_labels(remote)
        for definition, value in (
            (mirror_metrics.RECORD_COUNT, counts.records),
            (mirror_metrics.RECORD_RATE, counts.record_rate.rate(now_ms)),
            (mirror_metrics.BYTE_COUNT, counts.bytes),
            (mirror_metrics.BYTE_RATE, counts.byte_rate.rate(now_ms)),
        ):
            yield Figure(definition=definition, labels=labels, value=value)
        for definitions, ages in (
            (mirror_metrics.RECORD_AGE, counts.record_age),
            (mirror_metrics.REPLICATION_LATENCY, counts.replication_latency),
        ):
            for suffix, value in ages.by_suffix(now_ms).items():
                yield Figure(definition=definitions[suffix], labels=labels, value=value)

    def _lag_figures(
        self,
        key: TopicPartition,
        views: Mapping[str, PartitionView],
        counts: CopiedCounts,
        now: Moment,
    ) -> Iterator[Figure]:
        labels, now_ms = self._flow() | topic_labels(key), now.monotonic_ms
        lags = [view.lag for view in views.values()]
        known = [lag for lag in lags if lag is not None]
        if known:
            lag = sum(known)
            yield Figure(definition=sparkmirror_metrics.LAG_RECORDS, labels=labels, value=lag)
            speed = counts.position_rate.rate(now_ms) - counts.end_rate.rate(now_ms)
            if len(known) == len(lags) and (not lag or speed > 0):
                eta_s = lag / speed if lag else 0.0
                yield Figure(definition=sparkmirror_metrics.ETA_SECONDS, labels=labels, value=eta_s)
            if counts.records or not lag:
                size = lag * counts.bytes / max(counts.records, 1)
                yield Figure(definition=sparkmirror_metrics.LAG_BYTES, labels=labels, value=size)
        time_lags = self._counts.time_lags
        seconds = [time_lags.seconds(name, view, now.wall_s) for name, view in views.items()]
        known_s = [one for one in seconds if one is not None]
        if known_s:
            yield Figure(
                definition=sparkmirror_metrics.LAG_SECONDS, labels=labels, value=max(known_s)
            )
        if counts.last_progress_s is not None:
            yield Figure(
                definition=sparkmirror_metrics.LAST_PROGRESS,
                labels=labels,
                value=counts.last_progress_s,
            )

    def _topic_figures(self, views: Mapping[TopicPartition, PartitionView]) -> Iterator[Figure]:
        states = Counter((partition.topic, view.state) for partition, view in views.items())
        yield from self._by_topic(sparkmirror_metrics.PARTITIONS, "state", states)
        unknown = Counter({partition.topic: 0 for partition in views})
        stalled = unknown.copy()
        unknown.update(partition.topic for partition, view in views.items() if view.lag is None)
        stalled.update(partition.topic for partition, view in views.items() if _is_stalled(view))
        for definition, counts in (
            (sparkmirror_metrics.LAG_UNKNOWN_PARTITIONS, unknown),
            (sparkmirror_metrics.STALLED_PARTITIONS, stalled),
        ):
            for topic, count in sorted(counts.items()):
                labels = self._flow() | {"topic": jmx_sanitize(topic)}
                yield Figure(definition=definition, labels=labels, value=count)

    def _counter_figures(self) -> Iterator[Figure]:
        batches = self._counts.lane_batches
        yield from self._by_topic(sparkmirror_metrics.LANE_BATCHES, "reason", batches)
        yield from self._by_topic(sparkmirror_metrics.EVENTS, "kind", self._events)
        yield from self._by_topic(sparkmirror_metrics.LOST_RECORDS, "kind", self._lost_records)
        for topic in sorted(self._job.remote_topics if self._job else ()):
            labels = self._flow() | {"topic": jmx_sanitize(topic)}
            for definition, records in (
                (sparkmirror_metrics.SUPPRESSED_RECORDS, self._counts.suppressed),
                (sparkmirror_metrics.FILTERED_RECORDS, self._counts.filtered),
            ):
                yield Figure(definition=definition, labels=labels, value=records[topic])
        for definition, value in (
            (sparkmirror_metrics.DRIVER_RESTARTS, self._driver_restarts),
            (sparkmirror_metrics.TASK_RESTARTS, self._counts.lost_attempts),
        ):
            yield Figure(definition=definition, labels=self._flow(), value=value)

    def _by_topic(
        self, definition: MetricDefinition, label: str, counts: Mapping[tuple[str, str], int]
    ) -> Iterator[Figure]:
        assert self._job is not None
        for (topic, word), count in sorted(counts.items()):
            if topic not in self._job.remote_topics:
                continue  # it has left the plan
            labels = self._flow() | {"topic": jmx_sanitize(topic), label: word}
            yield Figure(definition=definition, labels=labels, value=count)

    def _flow(self) -> dict[str, str]:
        assert self._job is not None
        return {
            "source": jmx_sanitize(self._job.settings.source_alias),
            "target": jmx_sanitize(self._job.settings.target_alias),
            "connector": self._connector,
        }


def _is_stalled(view: PartitionView) -> bool:
    """Whether a partition that is to be copied says why it is not."""
    return bool(view.reason) and view.state in set(LeaseState)
