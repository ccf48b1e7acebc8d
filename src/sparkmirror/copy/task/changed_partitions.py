"""The partitions of a task that have news: for the next report, and for the task itself.

Everything that changes a partition calls `LeasedPartition.mark_changed`. So the work of a task
follows from the partitions that move, not from all that it has.

Invariants:
    A  a partition whose state is not the reported one has changed since the last report
    B  a partition that needs attention has changed since it last needed none
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkmirror.copy.task.leased_partition import LeasedPartition


@dataclass(slots=True)
class ChangedPartitions:
    """Remembers what has changed. Belongs to the task's thread."""

    _unreported: dict[LeasedPartition, None] = field(default_factory=dict)
    _attention: dict[LeasedPartition, None] = field(default_factory=dict)

    def add(self, partition: LeasedPartition) -> None:
        """Record that a partition may have changed."""
        self._unreported[partition] = self._attention[partition] = None

    def discard(self, partition: LeasedPartition) -> None:
        """Forget a partition whose lease is returned."""
        self._unreported.pop(partition, None)
        self._attention.pop(partition, None)

    @property
    def has_unreported(self) -> bool:
        """Whether a partition has changed since the last report."""
        return bool(self._unreported)

    def pop_unreported(self) -> list[LeasedPartition]:
        """Return the partitions that have changed since the last call."""
        unreported, self._unreported = self._unreported, {}
        return list(unreported)

    def needing_attention(self) -> list[LeasedPartition]:
        """Return every partition that needs attention."""
        self._attention = {
            partition: None for partition in self._attention if partition.needs_attention
        }
        return list(self._attention)
