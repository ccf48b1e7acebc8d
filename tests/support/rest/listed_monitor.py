"""A monitor of partitions, events and groups for tests of REST."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.connect.herder.mirror_monitor_api import MirrorEvent, MirrorPartitionStatus

LEASED_PARTITION = MirrorPartitionStatus(
    topic="orders",
    partition=0,
    remote_topic="A.orders",
    task=0,
    state="leased",
    position=7,
    end=9,
    lag=2,
    records=7,
    bytes=70,
    reason="",
)


class ListedMonitor:
    """A `MirrorMonitor` with what a test lists, the same for every connector."""

    def __init__(self) -> None:
        self.listed_partitions: list[MirrorPartitionStatus] = []
        self.listed_events: list[MirrorEvent] = []
        self.listed_groups: list[GroupPartitionReport] = []
        self.exclusion = "{group} is excluded"

    def partitions(self, connector: str) -> Sequence[MirrorPartitionStatus]:
        return self.listed_partitions

    def events(self, connector: str) -> Sequence[MirrorEvent]:
        return self.listed_events

    def groups(self, connector: str) -> Sequence[GroupPartitionReport]:
        return self.listed_groups

    def group_exclusion(self, connector: str, group: str) -> str:
        return self.exclusion.format(group=group)
