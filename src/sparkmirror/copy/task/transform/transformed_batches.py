"""Collects the records that a chain keeps, and queues them as batches for the target.

Records of several small batches of one response become one batch, as in the merge lane. Offsets
that have no record to copy (dropped records, markers, gaps) lie between the spans of a batch, or
before its `next_source_offset`. If nothing is kept, only the position advances:

    source log     100 101 102 103 104 105 | 106 107 108 109
    kept               101 102     104     |                    the rest is dropped
    queue          spans (101,2) (104,1), next source offset 106 | position 110
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from sparkmirror.copy.task.batch_converter import UncopyableRecord, enqueue_piece, too_large
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.transform.batch_transform import RecordOutcomes
from sparkmirror.copy.task.transform.dropped_records import DroppedRecords
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.lanes.merge import MAX_MERGED_BYTES, MAX_TIME_GAP_MS
from sparkmirror.wire.batch.lanes.reopen import OversizedRecord, ReopenedBatch
from sparkmirror.wire.batch.rewrite import RewrittenRecord, rewrite_batches
from sparkmirror.wire.batch.target_limits import TargetLimits

_RECORD_OVERHEAD: Final = 12
"""The most bytes of a usual record besides its content: length, attributes and two deltas."""


@dataclass(slots=True)
class TransformedBatches:
    """Records of one partition that are not queued yet; empty between two fetch responses."""

    limits: TargetLimits
    dropped: DroppedRecords = field(default_factory=DroppedRecords)
    _records: list[RewrittenRecord] = field(default_factory=list)
    _size: int = 0
    _codec: CompressionType = CompressionType.NONE
    _end: int = 0
    """The source offset up to which everything is collected or dropped."""

    def position(self, queue: PartitionQueue) -> int:
        """The next source offset to read."""
        return max(queue.next_fetch_offset, self._end)

    def skip_to(self, next_source_offset: int) -> None:
        """Record that no more record is copied before this source offset."""
        self._end = max(self._end, next_source_offset)

    def collect(
        self,
        queue: PartitionQueue,
        outcomes: RecordOutcomes,
        codec_id: int,
        dead_letter_offset: int | None = None,
    ) -> UncopyableRecord | None:
        """Collect what is kept of one fetched batch with this codec.

        What lies before `dead_letter_offset` is queued at once: it does not wait for a dead letter.
        Returns the first record that is too large, if any: then the rest is not collected.
        """
        codec, kept = self.limits.codec_for(codec_id), outcomes.kept
        if dead_letter_offset is not None:
            first = bisect_left(kept, dead_letter_offset, key=attrgetter("source_offset"))
            uncopyable = self._add(queue, kept[:first], codec) or self.flush(queue)
            if uncopyable:
                return uncopyable
            kept = kept[first:]
        return self._add(queue, kept, codec)

    def _add(
        self, queue: PartitionQueue, records: Sequence[RewrittenRecord], codec: CompressionType
    ) -> UncopyableRecord | None:
        """Collect what is kept of one batch; queue what was collected before if it must not join.

        Returns the first record that is too large, if any: then nothing is collected.
        """
        if not records:
            return None
        size = sum(len(record.content) for record in records) + _RECORD_OVERHEAD * len(records)
        uncopyable = None
        if self._records and not self._may_join(records, size, codec):
            uncopyable = self.flush(queue)
        if uncopyable is None:
            self._records += records
            self._size += size
            self._codec = codec
            self.skip_to(records[-1].source_offset + 1)
        return uncopyable

    def _may_join(
        self, records: Sequence[RewrittenRecord], size: int, codec: CompressionType
    ) -> bool:
        """Whether records may be in one batch with those before. A target may refuse a batch for
        one record that is too old or too new: records of another time must not be refused with it.
        """
        gap_ms = abs(records[0].timestamp - self._records[-1].timestamp)
        return (
            codec is self._codec
            and self._size + size <= min(MAX_MERGED_BYTES, self.limits.max_batch_bytes)
            and gap_ms <= MAX_TIME_GAP_MS
        )

    def flush(self, queue: PartitionQueue) -> UncopyableRecord | None:
        """Queue what is collected, and advance; return the first record that is too large."""
        records, self._records, self._size = self._records, [], 0
        end, self._end = self._end, 0
        pieces: list[ReopenedBatch] = []
        oversized = None
        for piece in rewrite_batches(records, self._codec, self.limits.max_batch_bytes):
            if isinstance(piece, OversizedRecord):
                oversized = piece
                break
            pieces.append(piece)
        for piece in pieces:
            is_last = piece is pieces[-1] and oversized is None
            enqueue_piece(queue, piece, end if is_last else None)
        if oversized is None and end > queue.next_fetch_offset:
            queue.skip_to(end)
        self.dropped.count_before(queue.next_fetch_offset)
        return too_large(oversized, self.limits) if oversized else None
