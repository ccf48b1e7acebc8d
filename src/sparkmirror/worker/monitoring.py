"""What is to be seen of the connectors of one worker: the latest word of each.

Connectors are known here under the names that REST gives them, so that a node of several flows can
have one sight for all.
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
    """Implements `Watching`. Any thread may tell it something, or ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._snapshots: dict[str, CopySnapshot] = {}
        self._group_reports: dict[str, GroupReports] = {}

    def for_flow(self, prefix: str = "") -> FlowMonitor:
        """The part of one herder, whose connectors are called `<prefix><name>` here."""
        with self._lock:
            explanations = self._group_reports.setdefault(prefix, GroupReports())
        return FlowMonitor(self, prefix, explanations)

    def on_snapshot(self, connector: str, snapshot: CopySnapshot) -> None:
        """Take in how far a source connector is."""
        with self._lock:
            self._snapshots[connector] = snapshot

    def partitions(self, connector: str) -> Sequence[MirrorPartitionStatus]:
        """How far a source connector is, partition by partition."""
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
        """What became of each group's offsets, and why."""
        with self._lock:
            of_flows = list(self._group_reports.items())
        for prefix, explanations in of_flows:
            if connector.startswith(prefix):
                found = explanations.reports_for(connector.removeprefix(prefix))
                if found:
                    return found
        return ()


class FlowMonitor:
    """What one herder's connectors tell of themselves."""

    def __init__(self, sight: WorkerMonitor, prefix: str, explanations: GroupReports) -> None:
        self._monitor = sight
        self._prefix = prefix
        self.group_reports = explanations

    def on_snapshot(self, connector: str, snapshot: CopySnapshot) -> None:
        """Take in how far a source connector is."""
        self._monitor.on_snapshot(f"{self._prefix}{connector}", snapshot)
