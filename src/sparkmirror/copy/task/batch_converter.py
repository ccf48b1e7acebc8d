"""Converts the fetched record batches of one partition to pending batches, in source order.

The converter verifies each batch, chooses the cheapest correct lane for it
(`wire.batch.lanes.forward_or_reopen`) and appends it to the partition's queue. A batch that must
not be copied only advances the position. At the first record that cannot be copied the conversion
stops: everything before it is queued, nothing after it is read, and the reason is returned.

A conversion that takes long (`is_timed`) stops at its deadline behind the batch at hand, if the
position has advanced. The rest is fetched again.

No I/O. Retains the fetch response once for every pending batch whose bytes are a view into it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sparkmirror.copy.record_ages import AgeCounter
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
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
from sparkmirror.wire.batch.lanes.forward_or_reopen import choose_lane
from sparkmirror.wire.batch.lanes.lane_reason import Lane, LaneReason
from sparkmirror.wire.batch.lanes.merge import (
    SmallBatch,
    fits_in_merged,
    is_consecutive,
    is_mergeable,
    max_merged_size,
    merge_batches,
)
from sparkmirror.wire.batch.lanes.reopen import OversizedRecord, ReopenedBatch, reopen_batch
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffer_pool import ResponseFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class UncopyableRecord:
    """A record that cannot be copied: its source offset and the reason."""

    offset: int
    reason: str
    wanted_topic: str = ""
    """The topic that it goes to, if that must be created first."""


@dataclass(slots=True)
class BatchConverter:
    """Converts what is fetched of one queue. `lanes` counts batches by the reason of a lane."""

    limits: TargetLimits
    read_committed: bool = True
    lanes: Counter[LaneReason] = field(default_factory=Counter)
    leader_epoch: int = NO_EPOCH
    """Leader epoch of the last batch. By it the source detects that its log was truncated."""
    ages: AgeCounter = field(default_factory=AgeCounter)
    """The ages of the records queued since the last report."""
    clock: Callable[[], float] = time.time
    filtered: int = 0
    """Records that transformations have dropped since the last report."""
    skipped: int = 0
    """Records that failed in a transformation since the last report, and are not copied."""
    errors_logged: int = 0
    """Log lines about such records since the last report."""
    unread_bytes: int = 0
    """How much of the last response was left at the deadline."""
    _small: list[SmallBatch] = field(default_factory=list)
    """Consecutive small batches, not queued yet; empty between two calls of `convert`."""
    _small_bytes: int = 0

    @property
    def is_timed(self) -> bool:
        """Whether a conversion may take so long that it observes its deadline."""
        return False

    def pop_lanes(self) -> Counter[LaneReason]:
        """Return the counts since the last call."""
        counts, self.lanes = self.lanes, Counter()
        return counts

    def convert(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        records: memoryview,
        aborted: Sequence[AbortedTransaction],
        deadline: float = math.inf,
    ) -> UncopyableRecord | None:
        """Queue what can be copied, in order; return the first record that cannot be, if any."""
        batches, expected = len(queue.ready), queue.next_expected
        uncopyable = self._queue_batches(queue, frame, records, aborted, deadline)
        self._count_ages(queue, batches, expected)
        return uncopyable

    def _count_ages(self, queue: PartitionQueue, batches: int, expected: int) -> None:
        """Count what was queued behind so many batches and records."""
        if len(queue.ready) > batches:
            ends = queue.ready[batches], queue.ready[-1]
            self._add_ages(ends, queue.next_expected - expected)

    def _add_ages(self, batches: Sequence[PendingBatch], records: int) -> None:
        """Count this many records, whose times the headers of these batches have."""
        if batches:
            oldest_ms = min(batch.header.base_timestamp for batch in batches)
            newest_ms = max(batch.header.max_timestamp for batch in batches)
            self.ages.add(oldest_ms, newest_ms, records, int(self.clock() * 1000))

    def _queue_batches(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        records: memoryview,
        aborted: Sequence[AbortedTransaction],
        deadline: float,
    ) -> UncopyableRecord | None:
        self.unread_bytes = 0
        filter_ = AbortedTransactionFilter(aborted if self.read_committed else ())
        old: list[BatchSpan] = []
        first = queue.next_fetch_offset
        try:
            for span in iter_batches(records):
                if span.magic < MAGIC:
                    old.append(span)
                    continue
                batch = records[span.start : span.end]
                uncopyable = self._upgrade(queue, frame, records, old) or self._convert_batch(
                    queue, frame, batch, filter_
                )
                if uncopyable:
                    return uncopyable
                if self.is_timed and self.is_over(deadline) and self._position(queue) > first:
                    self.unread_bytes = len(records) - span.end
                    break
            return self._upgrade(queue, frame, records, old) or self._flush(queue, frame)
        except BatchError as error:
            return self._flush(queue, frame) or UncopyableRecord(
                offset=queue.next_fetch_offset, reason=str(error)
            )

    def is_over(self, deadline: float) -> bool:
        """Whether a conversion with this deadline has to stop."""
        return False

    def _position(self, queue: PartitionQueue) -> int:
        """Return the source offset up to which everything is queued, collected or skipped."""
        return queue.next_fetch_offset

    def _convert_batch(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        batch: memoryview,
        filter_: AbortedTransactionFilter,
    ) -> UncopyableRecord | None:
        header = read_header(batch)
        self.leader_epoch = header.leader_epoch
        reason = choose_lane(
            header, self._position(queue), filter_.is_aborted(header, batch), self.limits
        )
        return self._convert_in_lane(queue, frame, header, batch, reason)

    def _convert_in_lane(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        header: BatchHeader,
        batch: memoryview,
        reason: LaneReason,
    ) -> UncopyableRecord | None:
        if reason is LaneReason.PLAIN and is_mergeable(header):
            verify_crc(header, batch)
            self._collect_small(queue, frame, SmallBatch(header, batch))
            return None
        self._merge_small(queue, frame)
        if reason.lane is Lane.FORWARD:
            verify_crc(header, batch)
        return self._copy_verified(queue, frame, header, batch, reason)

    def _copy_verified(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        header: BatchHeader,
        batch: memoryview,
        reason: LaneReason,
    ) -> UncopyableRecord | None:
        """Queue a batch in its lane, or skip it. A batch to forward must be verified."""
        self.lanes[reason] += 1
        if reason.lane is Lane.FORWARD:
            self._forward(queue, frame, header, batch)
        elif reason.lane is Lane.REOPEN:
            return self._reopen(queue, header, batch)
        elif header.next_offset > queue.next_fetch_offset:
            queue.skip_to(header.next_offset)
        return None

    def _flush(self, queue: PartitionQueue, frame: ResponseFrame) -> UncopyableRecord | None:
        """Queue what is collected; return the first record that cannot be copied, if any."""
        self._merge_small(queue, frame)
        return None

    def _forward(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        header: BatchHeader,
        batch: memoryview,
    ) -> None:
        frame.retain()
        spans = ((header.base_offset, header.record_count),)
        self._enqueue(queue, header, batch, spans, header.next_offset, frame.release)

    def _collect_small(
        self, queue: PartitionQueue, frame: ResponseFrame, small: SmallBatch
    ) -> None:
        """Keep a small batch until the next batch is known."""
        header = small.header
        if self._small and not (
            is_consecutive(self._small[-1].header, header)
            and fits_in_merged(self._small_bytes, header, self.limits.max_batch_bytes)
        ):
            self._merge_small(queue, frame)
        self._small.append(small)
        self._small_bytes += max_merged_size(header)

    def _merge_small(self, queue: PartitionQueue, frame: ResponseFrame) -> None:
        """Queue the collected small batches, merged to one batch if there are several."""
        small, self._small, self._small_bytes = self._small, [], 0
        if not small:
            return
        try:
            merged = merge_batches(small) if len(small) > 1 else None
        except BatchError:
            merged = None  # the checksum is right, so each batch is forwarded unchanged
        if merged is None:
            self.lanes[LaneReason.PLAIN] += len(small)
            for header, batch in small:
                self._forward(queue, frame, header, batch)
            return
        self.lanes[LaneReason.MERGED] += len(small)
        first, last = small[0].header, small[-1].header
        header = read_header(merged)
        spans = ((first.base_offset, header.record_count),)
        batch, release = frame.keep(merged)
        self._enqueue(queue, header, batch, spans, last.next_offset, release)

    def _reopen(
        self, queue: PartitionQueue, header: BatchHeader, batch: memoryview
    ) -> UncopyableRecord | None:
        for piece in reopen_batch(header, batch, queue.next_fetch_offset, self.limits):
            if isinstance(piece, OversizedRecord):
                return too_large(piece, self.limits)
            enqueue_piece(queue, piece)
        if header.next_offset > queue.next_fetch_offset:
            queue.skip_to(header.next_offset)
        return None

    def _upgrade(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        records: memoryview,
        old: list[BatchSpan],
    ) -> UncopyableRecord | None:
        """Convert messages of formats 0 and 1 to one record batch, and queue that."""
        if not old:
            return None
        batch = memoryview(
            message_format_v1.upgrade_messages([records[span.start : span.end] for span in old])
        )
        self.lanes[LaneReason.OLD_MESSAGE_FORMAT] += len(old)
        old.clear()
        return self._convert_upgraded(queue, frame, read_header(batch), batch)

    def _convert_upgraded(
        self, queue: PartitionQueue, frame: ResponseFrame, header: BatchHeader, batch: memoryview
    ) -> UncopyableRecord | None:
        self._merge_small(queue, frame)
        if header.next_offset > queue.next_fetch_offset:
            return self._reopen(queue, header, batch)
        return None

    @staticmethod
    def _enqueue(
        queue: PartitionQueue,
        header: BatchHeader,
        batch: memoryview,
        spans: tuple[tuple[int, int], ...],
        next_source_offset: int,
        release: Callable[[], None],
    ) -> None:
        queue.enqueue(
            PendingBatch(
                header=header,
                batch=batch,
                spans=spans,
                next_source_offset=next_source_offset,
                release=release,
            )
        )


def enqueue_piece(
    queue: PartitionQueue, piece: ReopenedBatch, next_source_offset: int | None = None
) -> None:
    """Queue a batch that has memory of its own. By default it ends behind its last record."""
    first, length = piece.runs[-1]
    body = memoryview(piece.batch)
    queue.enqueue(
        PendingBatch(
            header=read_header(body),
            batch=body,
            spans=tuple((run.first_source_offset, run.length) for run in piece.runs),
            next_source_offset=first + length if next_source_offset is None else next_source_offset,
            release=_no_release,
        )
    )


def too_large(record: OversizedRecord, limits: TargetLimits) -> UncopyableRecord:
    """The record as one that cannot be copied, with the limit to raise."""
    limited_by = "the remote topic allows; raise its max.message.bytes"
    if limits.is_bound_by_request:
        limited_by = "a request of the target's producer can hold; raise its max.request.size"
    return UncopyableRecord(
        offset=record.source_offset,
        reason=f"the record at offset {record.source_offset} needs {record.size} bytes, more than"
        f" the {record.limit} that {limited_by}",
    )


def _no_release() -> None:
    """No-op: a rewritten batch has memory of its own, not a view into a fetch response."""
