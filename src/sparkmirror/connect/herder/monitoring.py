"""What can be watched of a mirror beyond Connect's own API: partitions and groups, one by one.

The REST room serves it under paths that Connect does not have; whoever runs connectors keeps it.
Any thread may ask; nothing blocks; a connector that has nothing to show shows nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorPartitionStatus:
    """One source partition: how far its copy is. Offsets are the next ones, -1 if unknown."""

    topic: str
    partition: int
    remote_topic: str
    task: int
    state: str
    """waiting, leased, doubtful or held"""
    position: int
    end: int
    lag: int
    records: int
    bytes: int
    reason: str
    """Why it does not move, if it does not."""


class MirrorMonitor(Protocol):
    """Everything that can be watched."""

    def partitions(self, connector: str) -> Sequence[MirrorPartitionStatus]:
        """How far a source connector is, partition by partition."""
        ...

    def groups(self, connector: str) -> Sequence[GroupPartitionReport]:
        """What became of each group's offsets at a checkpoint connector, and why."""
        ...
