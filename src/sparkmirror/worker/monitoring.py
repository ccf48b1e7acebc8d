"""The latest progress of the connectors of one worker, for REST.

Connector names are those of REST; in dedicated mode they have the flow as a prefix.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sparkmirror.connect.connectors.checkpoint.group_report import (
    GroupPartitionReport,
    GroupReports,
)
from sparkmirror.connect.herder.monitoring import MirrorPartitionStatus
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.model import TopicPartition


class WorkerMonitor:
    """Implements `connect.herder.monitoring`. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshots: dict[str, CopySnapshot] = {}
        self._group_reports: dict[str, GroupReports] = {}

    def for_flow(self, prefix: str = "") -> FlowMonitor:
        """The monitor for one herder; its connectors get the names `<prefix><name>`."""
        with self._lock:
            reports = self._group_reports.setdefault(prefix, GroupReports())
        return FlowMonitor(self, prefix, reports)

    def on_snapshot(self, connector: str, snapshot: CopySnapshot) -> None:
        """Store the latest snapshot of a source connector."""
        with self._lock:
            self._snapshots[connector] = snapshot

    def partitions(self, connector: str) -> Sequence[MirrorPartitionStatus]:
        """The progress of a source connector, partition by partition."""
        with self._lock:
            snapshot = self._snapshots.get(connector, CopySnapshot())
        return [
            MirrorPartitionStatus(
                topic=partition.topic,
                partition=partition.partition,
                remote_topic=view.remote,
                task=view.task,
                state=view.state,
                position=view.position,
                end=view.end,
                lag=view.lag,
                records=view.records,
                bytes=view.bytes,
                reason=view.reason,
            )
            for partition, view in sorted(
                (TopicPartition.parse(key), view) for key, view in snapshot.partitions.items()
            )
        ]

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


class FlowMonitor:
    """Receives the progress of one herder's connectors."""

    def __init__(self, monitor: WorkerMonitor, prefix: str, reports: GroupReports) -> None:
        self._monitor = monitor
        self._prefix = prefix
        self.group_reports = reports

    def on_snapshot(self, connector: str, snapshot: CopySnapshot) -> None:
        """Store the latest snapshot of a source connector."""
        self._monitor.on_snapshot(f"{self._prefix}{connector}", snapshot)
