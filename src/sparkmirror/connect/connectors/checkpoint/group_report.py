"""Why each group's offset is, or is not, on the target: plain values for people to read.

Checkpoint tasks put in what they found, REST and command line take it out. Any thread may do so.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from sparkmirror.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartitionReport:
    """One group's place in one source partition, and what became of it."""

    group: str
    partition: TopicPartition
    """Of the source."""
    remote: TopicPartition | None
    """Its copy on the target; None if it is not known."""
    upstream: int | None
    """Where the group stands at the source; None if it has committed nothing."""
    downstream: int | None
    """Where it would go on at the target; None if that is not known."""
    checkpoint: str
    """What became of its checkpoint."""
    translated: str = ""
    """How the offset was translated, or why it could not be."""
    written: str = ""
    """What became of the group on the target; empty if offsets are not written there."""


class GroupReports:
    """The latest word on every group, by connector."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_group: dict[str, dict[str, tuple[GroupPartitionReport, ...]]] = {}

    def update(self, connector: str, group: str, found: Iterable[GroupPartitionReport]) -> None:
        """Say anew what is known of a group."""
        with self._lock:
            self._by_group.setdefault(connector, {})[group] = tuple(found)

    def remove(self, connector: str, groups: Iterable[str]) -> None:
        """Forget groups that nobody follows any more."""
        with self._lock:
            known = self._by_group.get(connector, {})
            for group in groups:
                known.pop(group, None)

    def reports_for(
        self, connector: str, group: str | None = None
    ) -> tuple[GroupPartitionReport, ...]:
        """Everything known of a connector's groups, or of one group; groups in order."""
        with self._lock:
            known = self._by_group.get(connector, {})
            return tuple(
                one for name in sorted(known) if group in (None, name) for one in known[name]
            )
