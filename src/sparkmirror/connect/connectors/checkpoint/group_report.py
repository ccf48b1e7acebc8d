"""Why each group's offset is, or is not, on the target: values for REST and the command line.

Checkpoint tasks write the reports, REST and the command line read them. Why a group has no report,
the connector knows. Any thread may call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sparkmirror.connect.connectors.checkpoint.checkpoint_latency import CheckpointLatencies
from sparkmirror.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartitionReport:
    """One group's offset in one source partition, and the outcome of its translation."""

    group: str
    partition: TopicPartition
    """The source partition."""
    remote: TopicPartition | None
    """The remote partition; None if the topic is not mirrored."""
    upstream: int | None
    """The group's offset at the source; None if it has committed none."""
    downstream: int | None
    """The translated offset at the target; None if there is none."""
    checkpoint: str
    """The outcome of the checkpoint."""
    translated: str = ""
    """How the offset was translated, or why it could not be."""
    written: str = ""
    """The outcome of the group offset sync; empty if it is disabled."""


ExclusionReason = Callable[[str], str]
"""Returns why a group gets no checkpoints. Does not block."""


class GroupReports:
    """The latest reports of every group, by connector."""

    def __init__(self) -> None:
        self.latencies = CheckpointLatencies()
        self._lock = threading.Lock()
        self._exclusion_reasons: dict[str, ExclusionReason] = {}
        self._by_group: dict[str, dict[str, tuple[GroupPartitionReport, ...]]] = {}

    def update(self, connector: str, group: str, reports: Iterable[GroupPartitionReport]) -> None:
        """Replace the reports of a group."""
        with self._lock:
            self._by_group.setdefault(connector, {})[group] = tuple(reports)

    def remove(self, connector: str, groups: Iterable[str]) -> None:
        """Remove the reports of groups that the task no longer follows."""
        gone = tuple(groups)
        with self._lock:
            known = self._by_group.get(connector, {})
            for group in gone:
                known.pop(group, None)
        self.latencies.remove(connector, gone)

    def reports_for(
        self, connector: str, group: str | None = None
    ) -> tuple[GroupPartitionReport, ...]:
        """Return the reports of a connector's groups, or of one group; sorted by group."""
        with self._lock:
            known = self._by_group.get(connector, {})
            return tuple(
                one for name in sorted(known) if group in (None, name) for one in known[name]
            )

    def connectors(self) -> tuple[str, ...]:
        """Return the connectors that have reports."""
        with self._lock:
            return tuple(self._by_group)

    def set_exclusion_reason(self, connector: str, reason: ExclusionReason | None) -> None:
        """Set what explains the groups that a connector does not follow; None if it has stopped."""
        with self._lock:
            if reason is None:
                self._exclusion_reasons.pop(connector, None)
            else:
                self._exclusion_reasons[connector] = reason

    def exclusion_reason(self, connector: str, group: str) -> str:
        """Return why a connector does not follow a group; empty if the connector does not run."""
        with self._lock:
            reason = self._exclusion_reasons.get(connector)
        return reason(group) if reason else ""
