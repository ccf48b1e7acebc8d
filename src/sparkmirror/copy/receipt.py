"""Receipts: what one task attempt copied of each partition, summed up from acknowledgements.

A receipt says from where to where, how much, by which lanes. It is made of acknowledged runs only,
so it never claims what the target might not have. Holes between the runs (compaction, markers) do
not show: `records` counts what was copied, the offsets say where it begins and ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sparkmirror.copy.lease import Lease
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

NO_TIMESTAMP = -1


@dataclass(slots=True, kw_only=True)
class Receipt:
    """What was copied of one partition. First and last offsets are of copied records."""

    source: TopicPartition
    target: TopicPartition
    source_first: int
    target_first: int
    source_last: int = -1
    target_last: int = -1
    records: int = 0
    bytes: int = 0
    """As the batches lie on the wire: compressed if they are."""
    first_ms: int = NO_TIMESTAMP
    """Timestamp of the first record, and the largest one; -1 where records have none."""
    last_ms: int = NO_TIMESTAMP

    def merged(self, more: Receipt) -> Receipt:
        """One receipt for both: `more` is of the same partition, further on."""
        assert more.source == self.source
        return replace(
            self,
            source_last=more.source_last,
            target_last=more.target_last,
            records=self.records + more.records,
            bytes=self.bytes + more.bytes,
            last_ms=max(self.last_ms, more.last_ms),
        )


@dataclass(slots=True)
class ReceiptCollector:
    """The receipts of one task attempt."""

    _by_partition: dict[TopicPartition, Receipt] = field(default_factory=dict)
    _lanes: dict[TopicPartition, Counter[str]] = field(default_factory=dict)

    def add(self, lease: Lease, parcel: PendingBatch, runs: list[OffsetRun]) -> None:
        """Add an acknowledged parcel, in order."""
        receipt = self._by_partition.get(lease.source)
        if receipt is None:
            receipt = self._by_partition[lease.source] = Receipt(
                source=lease.source,
                target=lease.target,
                source_first=runs[0].source_first,
                target_first=runs[0].target_first,
                first_ms=parcel.header.base_timestamp,
            )
        last = runs[-1]
        receipt.source_last = last.source_first + last.length - 1
        receipt.target_last = last.target_first + last.length - 1
        receipt.records += parcel.record_count
        receipt.bytes += parcel.size
        receipt.last_ms = max(receipt.last_ms, parcel.max_timestamp_ms)

    def count_lanes(self, source: TopicPartition, lanes: Mapping[str, int]) -> None:
        """Add to how many batches took which lane, by reason."""
        self._lanes.setdefault(source, Counter()).update(lanes)

    def list_receipts(self) -> list[tuple[Receipt, dict[str, int]]]:
        """Every receipt with the lanes of its partition, in the order of the partitions."""
        return [
            (receipt, dict(self._lanes.get(source, {})))
            for source, receipt in sorted(self._by_partition.items())
        ]
