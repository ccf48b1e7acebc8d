"""Sorting: what a fetch brought for one partition becomes parcels, in source order.

Each batch is verified, takes the cheapest lane that is correct for it (`wire.batch.lane`) and joins
the partition's queue; what must not be copied only moves the position. The first thing that cannot
be copied ends the sorting: everything before it is queued, nothing after it is looked at, and the
reason is returned.

Knows no socket. Holds the frame once for every parcel whose bytes lie in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sparkmirror.copy.task.partition_queue import PartitionQueue
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.errors import BatchError
from sparkmirror.wire.batch import message_format_v1
from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction, AbortedTransactionFilter
from sparkmirror.wire.batch.checksum import verify_crc
from sparkmirror.wire.batch.header import (
    MAGIC,
    NO_EPOCH,
    BatchHeader,
    BatchSpan,
    iter_batches,
    read_header,
)
from sparkmirror.wire.batch.lane import Lane, LaneReason, choose_lane
from sparkmirror.wire.batch.merge import (
    SmallBatch,
    fits_in_merged,
    is_consecutive,
    is_mergeable,
    max_merged_size,
    merge_batches,
)
from sparkmirror.wire.batch.reopen import OversizedRecord, reopen_batch
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffers import ResponseFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class UncopyableRecord:
    """Something that cannot be copied: where it lies at the source, and why."""

    offset: int
    reason: str


@dataclass(slots=True)
class BatchConverter:
    """Sorts what is fetched for one partition. `lanes` counts batches by the reason of a lane."""

    limits: TargetLimits
    read_committed: bool = True
    lanes: Counter[LaneReason] = field(default_factory=Counter)
    leader_epoch: int = NO_EPOCH
    """Epoch of the last batch seen, by which the source notices that its log was truncated."""
    _small: list[SmallBatch] = field(default_factory=list)
    """Small batches side by side, not queued yet; empty between two calls of `sort`."""
    _small_bytes: int = 0

    def pop_lanes(self) -> Counter[LaneReason]:
        """The counts since they were last taken."""
        taken, self.lanes = self.lanes, Counter()
        return taken

    def convert(
        self,
        partition: PartitionQueue,
        frame: ResponseFrame,
        records: memoryview,
        aborted: Sequence[AbortedTransaction],
    ) -> UncopyableRecord | None:
        """Queue what can be copied, in order; say what stopped it, if anything did."""
        filter_ = AbortedTransactionFilter(aborted if self.read_committed else ())
        old: list[BatchSpan] = []
        try:
            for span in iter_batches(records):
                if span.magic < MAGIC:
                    self._merge_small(partition, frame)
                    old.append(span)
                    continue
                self._upgrade(partition, records, old)
                batch = records[span.start : span.end]
                refusal = self._convert_batch(partition, frame, batch, filter_)
                if refusal:
                    return refusal
            self._merge_small(partition, frame)
            self._upgrade(partition, records, old)
        except BatchError as error:
            self._merge_small(partition, frame)
            return UncopyableRecord(offset=partition.next_fetch_offset, reason=str(error))
        return None

    def _convert_batch(
        self,
        partition: PartitionQueue,
        frame: ResponseFrame,
        batch: memoryview,
        filter_: AbortedTransactionFilter,
    ) -> UncopyableRecord | None:
        header = read_header(batch)
        self.leader_epoch = header.leader_epoch
        reason = choose_lane(
            header, partition.next_fetch_offset, filter_.is_aborted(header, batch), self.limits
        )
        if reason is LaneReason.PLAIN and is_mergeable(header):
            verify_crc(header, batch)
            self._collect_small(partition, frame, SmallBatch(header, batch))
            return None
        self._merge_small(partition, frame)
        self.lanes[reason] += 1
        if reason.lane is Lane.FORWARD:
            verify_crc(header, batch)
            self._forward(partition, frame, header, batch)
        elif reason.lane is Lane.REOPEN:
            return self._reopen(partition, header, batch)
        elif header.next_offset > partition.next_fetch_offset:
            partition.skip_to(header.next_offset)
        return None

    def _forward(
        self,
        partition: PartitionQueue,
        frame: ResponseFrame,
        header: BatchHeader,
        batch: memoryview,
    ) -> None:
        frame.retain()
        spans = ((header.base_offset, header.record_count),)
        self._enqueue(partition, header, batch, spans, header.next_offset, frame.release)

    def _collect_small(
        self, partition: PartitionQueue, frame: ResponseFrame, small: SmallBatch
    ) -> None:
        """Keep a small batch until its neighbours are known."""
        header = small.header
        if self._small and not (
            is_consecutive(self._small[-1].header, header)
            and fits_in_merged(self._small_bytes, header, self.limits.max_message_bytes)
        ):
            self._merge_small(partition, frame)
        self._small.append(small)
        self._small_bytes += max_merged_size(header)

    def _merge_small(self, partition: PartitionQueue, frame: ResponseFrame) -> None:
        """Queue what was gathered, as one batch if it is several."""
        small, self._small, self._small_bytes = self._small, [], 0
        if not small:
            return
        try:
            merged = memoryview(merge_batches(small)) if len(small) > 1 else None
        except BatchError:
            merged = None  # its checksum is right, so it is passed on as it came, like larger ones
        if merged is None:
            self.lanes[LaneReason.PLAIN] += len(small)
            for header, batch in small:
                self._forward(partition, frame, header, batch)
            return
        self.lanes[LaneReason.MERGED] += len(small)
        first, last = small[0].header, small[-1].header
        header = read_header(merged)
        spans = ((first.base_offset, header.record_count),)
        self._enqueue(partition, header, merged, spans, last.next_offset, _no_release)

    def _reopen(
        self, partition: PartitionQueue, header: BatchHeader, batch: memoryview
    ) -> UncopyableRecord | None:
        for piece in reopen_batch(header, batch, partition.next_fetch_offset, self.limits):
            if isinstance(piece, OversizedRecord):
                return UncopyableRecord(offset=piece.source_offset, reason=_too_large(piece))
            first, length = piece.runs[-1]
            spans = tuple((run.first_source_offset, run.length) for run in piece.runs)
            body = memoryview(piece.batch)
            self._enqueue(partition, read_header(body), body, spans, first + length, _no_release)
        if header.next_offset > partition.next_fetch_offset:
            partition.skip_to(header.next_offset)
        return None

    def _upgrade(
        self, partition: PartitionQueue, records: memoryview, old: list[BatchSpan]
    ) -> None:
        """Turn messages from before record batches into one batch, and sort that."""
        if not old:
            return
        batch = memoryview(
            message_format_v1.upgrade_messages([records[span.start : span.end] for span in old])
        )
        self.lanes[LaneReason.OLD_MESSAGE_FORMAT] += len(old)
        old.clear()
        header = read_header(batch)
        if header.next_offset > partition.next_fetch_offset:
            refusal = self._reopen(partition, header, batch)
            if refusal:
                raise BatchError(refusal.reason)

    @staticmethod
    def _enqueue(
        partition: PartitionQueue,
        header: BatchHeader,
        batch: memoryview,
        spans: tuple[tuple[int, int], ...],
        source_next: int,
        release: Callable[[], None],
    ) -> None:
        partition.enqueue(
            PendingBatch(
                header=header,
                batch=batch,
                spans=spans,
                next_source_offset=source_next,
                release=release,
            )
        )


def _no_release() -> None:
    """A reopened piece has memory of its own: there is no frame to let go of."""


def _too_large(record: OversizedRecord) -> str:
    return (
        f"the record at offset {record.source_offset} needs {record.size} bytes, more than the"
        f" {record.limit} that the remote topic allows; raise its max.message.bytes"
    )
