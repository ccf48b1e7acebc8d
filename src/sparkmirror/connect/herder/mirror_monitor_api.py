"""Monitoring beyond Connect's API: every partition, every event and every group.

`rest` serves it under paths that Connect does not have; `worker` implements it. Any thread may
call; no method blocks. A connector of another class has no entries. None stands for a number that
is not known now; it is never written as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.herder.herder import ConnectorStateInfo
from sparkmirror.connect.runtime.status.task_state_times import TaskTimeShares


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorPartitionStatus:
    """Progress of one source partition. Offsets are those of the next record, None if unknown."""

    topic: str
    partition: int
    remote_topic: str
    task: int
    state: str
    """waiting, leased, doubtful, held, paused or stopped"""
    position: int | None
    end: int | None
    lag: int | None
    records: int
    bytes: int
    reason: str
    """Why it makes no progress; empty if it does, or if the operator paused or stopped it."""
    delivery: str = ""
    """sequenced, exactly-once or at-least-once; empty while it is unknown."""
    filtered: int = 0
    """Records that transformations have dropped since the driver started."""
    skipped: int = 0
    """Records that failed in a transformation since the driver started, and are not copied."""
    dead_letters: int = 0
    """Those of them that the topic for dead letters has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorEvent:
    """An event of one source partition. `lost_to` is the offset after the last lost one."""

    at_ms: int
    kind: str
    topic: str
    partition: int
    text: str
    lost_from: int | None = None
    lost_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupSummary:
    """Starts of connectors or tasks that succeeded and failed."""

    success: int = 0
    failure: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HerderFigures:
    """What a herder knows of its connectors and tasks without asking a cluster."""

    worker_id: str
    assignment: Assignment | None = None
    """None if the worker is no member of its group."""
    statuses: Mapping[str, ConnectorStateInfo] = field(default_factory=dict)
    """The connectors of the whole group that have a status, by name."""
    classes: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The full class names of these connectors, by name."""
    connector_startups: StartupSummary = StartupSummary()
    task_startups: StartupSummary = StartupSummary()
    task_times: Mapping[ConnectorTaskId, TaskTimeShares] = field(default_factory=dict)
    """For how much of their time the tasks of this worker were running or paused."""


class MirrorMonitor(Protocol):
    """Reads the progress of partitions and groups, and the events of partitions."""

    def partitions(self, connector: str) -> Sequence[MirrorPartitionStatus]:
        """Return the partitions of a source connector."""
        ...

    def events(self, connector: str) -> Sequence[MirrorEvent]:
        """Return the latest events of a source connector, oldest first."""
        ...

    def groups(self, connector: str) -> Sequence[GroupPartitionReport]:
        """Return each group's offsets of a checkpoint connector, and why they are as they are."""
        ...

    def group_exclusion(self, connector: str, group: str) -> str:
        """Return why a checkpoint connector does not follow a group; empty if not known."""
        ...
