"""The latest progress and the events of the connectors of one worker, for REST and the log.

Connector names are those of REST; in dedicated mode they have the flow as a prefix.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.connect.connectors.checkpoint.group_report import (
    GroupPartitionReport,
    GroupReports,
)
from sparkmirror.connect.connectors.shared.source_task_stats import HerderTaskStats
from sparkmirror.connect.herder.mirror_monitor_api import MirrorEvent, MirrorPartitionStatus
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.snapshot import CopyEvent, PartitionView
from sparkmirror.engine.supervisor.driver_status import DriverStatus
from sparkmirror.metrics.definition import Figure
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.model import TopicPartition
from sparkmirror.worker.metrics.checkpoint_group_metrics import group_figures, latency_figures
from sparkmirror.worker.metrics.metrics_settings import DEFAULT_SETTINGS, MetricsSettings
from sparkmirror.worker.metrics.source_connector_metrics import Moment, SourceFigures
from sparkmirror.worker.metrics.task_figures import stats_figures
from sparkmirror.worker.partition_states import IdleState, PartitionStates
from sparkmirror.worker.source_connector_events import SHOWN_EVENTS, SourceConnectorEvents

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _SourceProgress:
    """What the worker knows of one source connector."""

    figures: SourceFigures
    partitions: PartitionStates = field(default_factory=PartitionStates)
    events: SourceConnectorEvents = field(default_factory=SourceConnectorEvents)


class WorkerMonitor:
    """Implements `connect.herder.mirror_monitor_api`. Any thread may call it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._metrics: dict[str, MetricsSettings] = {}
        """By the prefix of a flow."""
        self._clock = clock
        self._lock = threading.Lock()
        self._sources: dict[str, _SourceProgress] = {}
        self._group_reports: dict[str, GroupReports] = {}
        self._task_stats: dict[str, HerderTaskStats] = {}

    def for_flow(
        self, prefix: str = "", metrics: MetricsSettings = DEFAULT_SETTINGS
    ) -> FlowMonitor:
        """The monitor for one herder; its connectors get the names `<prefix><name>`."""
        with self._lock:
            self._metrics.setdefault(prefix, metrics)
            reports = self._group_reports.setdefault(prefix, GroupReports())
            reports.latencies.config = metrics.window
            task_stats = self._task_stats.setdefault(prefix, HerderTaskStats(metrics.window))
        return FlowMonitor(self, prefix, reports, task_stats)

    # -- from connectors -------------------------------------------------------------------------

    def on_plan(self, connector: str, job: CopyJob) -> None:
        """A source connector has the partitions of this job."""
        with self._lock:
            source = self._find_source(connector)
            source.partitions.on_plan(job)
            source.figures.on_plan(job)

    def on_running(self, connector: str) -> None:
        """A source connector starts or resumes."""
        with self._lock:
            self._find_source(connector).partitions.on_requested(None)

    def on_paused(self, connector: str) -> None:
        """A source connector pauses."""
        with self._lock:
            self._find_source(connector).partitions.on_requested(IdleState.PAUSED)

    def on_status(self, connector: str, status: DriverStatus) -> None:
        """Store the status of a source connector's driver; log each event that is new."""
        with self._lock:
            source, now = self._find_source(connector), self._clock()
            source.partitions.on_status(status, now)
            source.figures.on_status(status, now * 1000, time.time())
            new = source.events.add(status.snapshot.events)
            source.figures.on_events(new)
        for event in new[:SHOWN_EVENTS]:
            log.warning(
                "Connector %s: %s: %s: %s", connector, event.partition, event.kind, event.text
            )
        if len(new) > SHOWN_EVENTS:
            log.warning(
                "Connector %s had %d events at once; its driver's log has all of them",
                connector,
                len(new),
            )

    def on_driver_ended(self, connector: str, problem: str = "") -> None:
        """The driver of a source connector has ended, with a problem or as it was asked to."""
        with self._lock:
            self._find_source(connector).partitions.on_driver_ended(problem)

    def on_tasks_ended(self, connector: str, state: TargetState | None) -> None:
        """A connector has no tasks on this worker. `state` is None if it was deleted.

        A stopped connector keeps the partitions that its tasks had here: each worker of a group
        shows its own. One that runs without tasks has none.
        """
        with self._lock:
            source = self._sources.get(connector)
            if source is None:
                return
            if state is None:
                del self._sources[connector]
            elif state is TargetState.STOPPED:
                source.partitions.on_requested(IdleState.STOPPED)
            else:
                source.partitions = PartitionStates()
                source.figures = self._new_figures(connector)

    def partition_counts(self, connector: str) -> Mapping[str, int]:
        """How many partitions each topic had in the last plan; empty if no plan is known."""
        with self._lock:
            source = self._sources.get(connector)
            return source.partitions.partition_counts() if source else {}

    def _find_source(self, connector: str) -> _SourceProgress:
        """Return what is known of a source connector. The caller has the lock."""
        found = self._sources.get(connector)
        if found is None:
            found = _SourceProgress(figures=self._new_figures(connector))
            self._sources[connector] = found
        return found

    def _new_figures(self, connector: str) -> SourceFigures:
        """Return figures with the settings of the connector's flow."""
        flows = (prefix for prefix in self._metrics if connector.startswith(prefix))
        prefix = max(flows, key=len, default="")
        return SourceFigures(connector, self._metrics.get(prefix, DEFAULT_SETTINGS))

    # -- from REST -------------------------------------------------------------------------------

    def partitions(self, connector: str) -> Sequence[MirrorPartitionStatus]:
        """The progress of a source connector, partition by partition."""
        with self._lock:
            source = self._sources.get(connector)
            views = source.partitions.views(self._clock()) if source else {}
        found = sorted((TopicPartition.parse(key), key) for key in views)
        return [_partition_status(partition, views[key]) for partition, key in found]

    def events(self, connector: str) -> Sequence[MirrorEvent]:
        """The latest events of a source connector, oldest first."""
        with self._lock:
            source = self._sources.get(connector)
            events = source.events.latest() if source else ()
        return [_mirror_event(event) for event in events]

    def figures(self) -> list[Figure]:
        """The figures of all connectors and their tasks, and of the groups that they follow."""
        with self._lock:
            now = self._clock()
            moment = Moment(monotonic_ms=now * 1000, wall_s=time.time())
            figures = [
                figure
                for source in self._sources.values()
                for figure in source.figures.figures(source.partitions.views(now), moment)
            ]
            flows = list(self._group_reports.items())
            task_stats = list(self._task_stats.items())
        for prefix, tasks in task_stats:
            figures.extend(stats_figures(prefix, tasks.summaries()))
        for prefix, reports in flows:
            for name in reports.connectors():
                figures.extend(group_figures(prefix + name, reports.reports_for(name)))
            detail = self._metrics.get(prefix, DEFAULT_SETTINGS).detail
            figures.extend(latency_figures(reports.latencies.latencies(), detail))
        return figures

    def clients(self) -> dict[str, Mapping[str, str]]:
        """The client properties of the clusters of all source connectors, by alias."""
        with self._lock:
            found: dict[str, Mapping[str, str]] = {}
            for source in self._sources.values():
                found |= source.figures.clients()
            return found

    def groups(self, connector: str) -> Sequence[GroupPartitionReport]:
        """For each group, how its offsets were translated, and why."""
        with self._lock:
            flows = list(self._group_reports.items())
        for prefix, reports in flows:
            if connector.startswith(prefix):
                found = reports.reports_for(connector.removeprefix(prefix))
                if found:
                    return found
        return ()

    def group_exclusion(self, connector: str, group: str) -> str:
        """Why a checkpoint connector does not follow a group; empty if that is not known."""
        with self._lock:
            flows = list(self._group_reports.items())
        reasons = (
            reports.exclusion_reason(connector.removeprefix(prefix), group)
            for prefix, reports in flows
            if connector.startswith(prefix)
        )
        return next(filter(None, reasons), "")


class FlowMonitor:
    """Receives the progress of one herder's connectors."""

    def __init__(
        self,
        monitor: WorkerMonitor,
        prefix: str,
        reports: GroupReports,
        task_stats: HerderTaskStats,
    ) -> None:
        self._monitor = monitor
        self._prefix = prefix
        self.group_reports = reports
        self.task_stats = task_stats

    def on_plan(self, connector: str, job: CopyJob) -> None:
        """A source connector has the partitions of this job."""
        self._monitor.on_plan(self._prefix + connector, job)

    def on_running(self, connector: str) -> None:
        """A source connector starts or resumes."""
        self._monitor.on_running(self._prefix + connector)

    def on_paused(self, connector: str) -> None:
        """A source connector pauses."""
        self._monitor.on_paused(self._prefix + connector)

    def on_status(self, connector: str, status: DriverStatus) -> None:
        """The driver of a source connector has sent a status."""
        self._monitor.on_status(self._prefix + connector, status)

    def on_driver_ended(self, connector: str, problem: str = "") -> None:
        """The driver of a source connector has ended, with a problem or as it was asked to."""
        self._monitor.on_driver_ended(self._prefix + connector, problem)

    def partition_counts(self, connector: str) -> Mapping[str, int]:
        """How many partitions each topic had in the last plan; empty if no plan is known."""
        return self._monitor.partition_counts(self._prefix + connector)

    def on_tasks_ended(self, connector: str, state: TargetState | None) -> None:
        """A connector has no tasks on this worker; None if it was deleted."""
        self._monitor.on_tasks_ended(self._prefix + connector, state)


def _partition_status(partition: TopicPartition, view: PartitionView) -> MirrorPartitionStatus:
    return MirrorPartitionStatus(
        topic=partition.topic,
        partition=partition.partition,
        remote_topic=view.remote,
        task=view.task,
        state=view.state,
        position=_known(view.position),
        end=_known(view.end),
        lag=view.lag,
        records=view.records,
        bytes=view.bytes,
        reason=view.reason,
        delivery=view.delivery,
        filtered=view.filtered,
        skipped=view.skipped,
        dead_letters=view.failures.dead_letters,
    )


def _mirror_event(event: CopyEvent) -> MirrorEvent:
    partition = TopicPartition.parse(event.partition)
    return MirrorEvent(
        at_ms=event.at_ms,
        kind=event.kind,
        topic=partition.topic,
        partition=partition.partition,
        text=event.text,
        lost_from=_known(event.lost_from),
        lost_to=_known(event.lost_to),
    )


def _known(offset: int) -> int | None:
    return offset if offset >= 0 else None
