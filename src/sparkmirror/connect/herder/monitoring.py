"""Monitoring beyond Connect's API: the state of every partition and every group.

`rest` serves it under paths that Connect does not have; `worker` implements it. Any thread may
call; no method blocks. A connector of another class has no entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorPartitionStatus:
    """Progress of one source partition. Offsets are those of the next record, -1 if unknown."""

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
    """Why it makes no progress; empty if it does."""


class MirrorMonitor(Protocol):
    """Reads the progress of partitions and groups."""

    def partitions(self, connector: str) -> Sequence[MirrorPartitionStatus]:
        """Return the partitions of a source connector."""
        ...

    def groups(self, connector: str) -> Sequence[GroupPartitionReport]:
        """Return each group's offsets of a checkpoint connector, and why they are as they are."""
        ...
