"""Adds up acknowledged batches to one receipt for each partition and its remote partition.

Transformations may send records of a partition to several topics: then there are several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.copy.receipt import Receipt
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

_SourceAndRemote = tuple[TopicPartition, TopicPartition]


@dataclass(slots=True)
class ReceiptCollector:
    """The receipts of one task attempt."""

    _by_partition: dict[tuple[TopicPartition, TopicPartition], Receipt] = field(
        default_factory=dict
    )
    _lanes: dict[TopicPartition, Counter[str]] = field(default_factory=dict)

    def add(
        self,
        source: TopicPartition,
        target: TopicPartition,
        batch: PendingBatch,
        runs: list[OffsetRun],
    ) -> None:
        """Add an acknowledged batch, in order within its partition."""
        receipt = self._by_partition.get((source, target))
        if receipt is None:
            receipt = self._by_partition[source, target] = Receipt(
                source=source,
                target=target,
                source_first=runs[0].source_first,
                target_first=runs[0].target_first,
                first_ms=batch.header.base_timestamp,
            )
        last = runs[-1]
        receipt.source_last = last.source_first + last.length - 1
        receipt.target_last = last.target_first + last.length - 1
        header = batch.header
        receipt.records += header.record_count
        receipt.bytes += header.size
        if header.max_timestamp > receipt.last_ms:
            receipt.last_ms = header.max_timestamp

    def count_lanes(self, source: TopicPartition, lanes: Mapping[str, int]) -> None:
        """Add batch counts by the reason of their lane."""
        self._lanes.setdefault(source, Counter()).update(lanes)

    def list_receipts(self) -> list[tuple[Receipt, dict[str, int]]]:
        """Return every receipt, sorted by partition; the first of a partition with its lanes."""
        lanes = {source: dict(counts) for source, counts in self._lanes.items()}
        return [
            (receipt, lanes.pop(source, {}))
            for (source, _), receipt in sorted(self._by_partition.items())
        ]
