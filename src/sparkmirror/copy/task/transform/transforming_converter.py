"""Converts fetched batches whose records go through the connector's transformations.

Which batches are copied at all is decided as without transformations: markers, aborted and emptied
batches are skipped. The records of all others are read from the position on, pass the chain, and
those that are kept are written again. A chain for which headers are enough leaves keys and values
unread, and a batch that it does not change takes the lane that it would take without a chain.

At the first record that fails the conversion stops, as at a record that is too large: everything
before it is queued, and the position stands at it. Records whose failure is tolerated are dropped;
`failures` logs them and makes their dead letters.

Records that go to different topics are collected by topic (`routed_batches`), and what one call of
`convert` has read is queued as one group (`produce.routing_queue`). There are no dead letters then.

The outcome depends on the records and the config alone, not on where batches begin or where the
position stands. So a driver that walks the same records after an unclean end finds what the task
had sent (`copy.driver.fencing.reconcile`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.copy.task.batch_converter import BatchConverter, UncopyableRecord
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.routing_queue import RoutingQueue
from sparkmirror.copy.task.transform.batch_transform import RecordOutcomes
from sparkmirror.copy.task.transform.collected_batches import CollectedBatches
from sparkmirror.copy.task.transform.failed_records import PartitionFailures
from sparkmirror.copy.task.transform.header_transform import HeaderTransform, count_from
from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction
from sparkmirror.wire.batch.checksum import verify_crc
from sparkmirror.wire.batch.header import BatchHeader
from sparkmirror.wire.batch.lanes.lane_reason import Lane, LaneReason
from sparkmirror.wire.batch.lanes.merge import FEW_RECORDS, is_mergeable
from sparkmirror.wire.batch.records import Record, decompress_records, read_records
from sparkmirror.wire.net.buffer_pool import ResponseFrame


class RecordsTransform(Protocol):
    """What the records of one partition pass."""

    def apply(self, records: Iterable[Record]) -> RecordOutcomes:
        """Return the outcomes, up to the first record that is refused."""
        ...


@dataclass(slots=True, kw_only=True)
class TransformingConverter(BatchConverter):
    """Converts what is fetched of one queue, with a chain."""

    transform: RecordsTransform
    batches: CollectedBatches
    """Records that are kept and not queued yet."""
    headers: HeaderTransform | None = None
    """The same chain, if topic and headers are enough for it."""
    failures: PartitionFailures | None = None
    """Reports records that failed; None if they are only counted."""
    monotonic: Callable[[], float] = time.monotonic
    """The clock of deadlines."""

    @property
    def is_timed(self) -> bool:
        """Whether a conversion may take so long that it observes its deadline."""
        return True

    def _queue_batches(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        records: memoryview,
        aborted: Sequence[AbortedTransaction],
        deadline: float,
    ) -> UncopyableRecord | None:
        uncopyable = BatchConverter._queue_batches(self, queue, frame, records, aborted, deadline)
        if self.failures:
            self.errors_logged += self.failures.settle(queue)
        return uncopyable

    def _count_ages(self, queue: PartitionQueue, batches: int, expected: int) -> None:
        if isinstance(queue, RoutingQueue):
            self._add_ages(queue.unacknowledged(), queue.active_records)
        else:
            BatchConverter._count_ages(self, queue, batches, expected)

    def is_over(self, deadline: float) -> bool:
        """Whether the deadline has passed."""
        return self.monotonic() >= deadline

    def _position(self, queue: PartitionQueue) -> int:
        return self.batches.position(queue)

    def _convert_in_lane(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        header: BatchHeader,
        batch: memoryview,
        reason: LaneReason,
    ) -> UncopyableRecord | None:
        if reason.lane is Lane.SKIP:
            self.lanes[reason] += 1
            self.batches.skip_to(header.next_offset)
            return None
        verify_crc(header, batch)
        if self.headers:
            return self._transform_headers(queue, frame, header, batch, reason)
        return self._transform(queue, header, batch)

    def _convert_upgraded(
        self, queue: PartitionQueue, frame: ResponseFrame, header: BatchHeader, batch: memoryview
    ) -> UncopyableRecord | None:
        if header.next_offset <= self._position(queue):
            return None
        return self._transform(queue, header, batch)

    def _transform(
        self, queue: PartitionQueue, header: BatchHeader, batch: memoryview
    ) -> UncopyableRecord | None:
        position = self.batches.position(queue)
        records = read_records(header, batch)
        outcomes = self.transform.apply(one for one in records if one.offset >= position)
        return self._collect(queue, header, batch, outcomes)

    def _transform_headers(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        header: BatchHeader,
        batch: memoryview,
        reason: LaneReason,
    ) -> UncopyableRecord | None:
        """Transform without keys and values; copy a batch that stays as it is in its own lane."""
        assert self.headers is not None
        body = decompress_records(header, batch)
        position = self.batches.position(queue)
        may_copy = not (reason is LaneReason.PLAIN and is_mergeable(header, FEW_RECORDS))
        if not self.headers.may_concern(body):
            if self.headers.filters_unnamed:
                filtered = [header.next_offset - 1] * count_from(header, body, position)
                return self._collect(queue, header, batch, RecordOutcomes(filtered=filtered))
            if self.headers.keeps_unnamed and may_copy:
                return self._copy_unchanged(queue, frame, header, batch, reason)
        outcomes, is_changed = self.headers.apply(header, body, position)
        if may_copy and not is_changed:
            return self._copy_unchanged(queue, frame, header, batch, reason)
        return self._collect(queue, header, batch, outcomes)

    def _copy_unchanged(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        header: BatchHeader,
        batch: memoryview,
        reason: LaneReason,
    ) -> UncopyableRecord | None:
        return self._flush(queue, frame) or self._copy_verified(queue, frame, header, batch, reason)

    def _collect(
        self,
        queue: PartitionQueue,
        header: BatchHeader,
        batch: memoryview,
        outcomes: RecordOutcomes,
    ) -> UncopyableRecord | None:
        is_kept = bool(outcomes.kept or outcomes.routed)
        self.lanes[LaneReason.TRANSFORMED if is_kept else LaneReason.FILTERED] += 1
        dead_letter_offset = None
        if self.failures and self.failures.needs_dead_letter(queue) and outcomes.skipped:
            dead_letter_offset = outcomes.skipped[0]
        uncopyable = self.batches.collect(queue, outcomes, header.codec_id, dead_letter_offset)
        if uncopyable is None:
            if self.failures and outcomes.skipped:
                self.failures.add(queue, _at(header, batch, outcomes.skipped), outcomes.errors)
            self.batches.dropped.add(outcomes.filtered, outcomes.skipped)
            end = outcomes.refused.offset if outcomes.refused else header.next_offset
            self.batches.skip_to(end)
            if outcomes.refused:
                uncopyable = self.batches.flush(queue) or outcomes.refused
        self._count_dropped()
        return uncopyable

    def _flush(self, queue: PartitionQueue, frame: ResponseFrame) -> UncopyableRecord | None:
        uncopyable = self.batches.flush(queue)
        self._count_dropped()
        return uncopyable

    def _count_dropped(self) -> None:
        filtered, skipped = self.batches.dropped.pop_counts()
        self.filtered += filtered
        self.skipped += skipped


def _at(header: BatchHeader, batch: memoryview, offsets: Sequence[int]) -> list[Record]:
    """The records of a batch at these offsets, as they were read."""
    wanted = frozenset(offsets)
    return [record for record in read_records(header, batch) if record.offset in wanted]
