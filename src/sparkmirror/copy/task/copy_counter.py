"""The object that counts what a task copied, as the sender sees it.

`TaskReporter` counts at once. `TransactionManager` keeps the counts until the commit.
"""

from __future__ import annotations

from typing import Protocol

from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.mirror.offsets.run_map import OffsetRun


class CopyCounter(Protocol):
    """Counts acknowledged batches."""

    def count(self, partition: LeasedPartition, batch: PendingBatch, runs: list[OffsetRun]) -> None:
        """Count a batch that the target has acknowledged, in order within its partition."""
        ...
