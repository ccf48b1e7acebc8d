"""Converts fetched batches whose records go through a chain that sends them to different topics.

As `transforming_converter`, but every record is read, and what one call of `convert` has read is
queued as one group (`produce.routing_queue`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sparkmirror.copy.task.batch_converter import BatchConverter, UncopyableRecord
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.routing_queue import RoutingQueue
from sparkmirror.copy.task.transform.batch_transform import BatchTransform
from sparkmirror.copy.task.transform.failed_records import PartitionFailures
from sparkmirror.copy.task.transform.routed_batches import RoutedBatches
from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction
from sparkmirror.wire.batch.checksum import verify_crc
from sparkmirror.wire.batch.forward_or_reopen import Lane, LaneReason
from sparkmirror.wire.batch.header import BatchHeader
from sparkmirror.wire.batch.records import read_records
from sparkmirror.wire.net.buffer_pool import ResponseFrame


@dataclass(slots=True, kw_only=True)
class RoutingConverter(BatchConverter):
    """Converts what is fetched of one `RoutingQueue`, with a chain."""

    is_timed: ClassVar[bool] = True
    transform: BatchTransform
    batches: RoutedBatches
    failures: PartitionFailures | None = None
    """Logs records that failed; None if they are only counted. There are no dead letters."""
    monotonic: Callable[[], float] = time.monotonic
    """The clock of deadlines."""

    def convert(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        records: memoryview,
        aborted: Sequence[AbortedTransaction],
        deadline: float = math.inf,
    ) -> UncopyableRecord | None:
        """Queue what can be copied as one group; return the first record that cannot be, if any."""
        uncopyable = self._queue_batches(queue, frame, records, aborted, deadline)
        if self.failures:
            self.errors_logged += self.failures.settle(queue)
        if group := queue.unacknowledged():
            self.ages.add(
                min(batch.header.base_timestamp for batch in group),
                max(batch.header.max_timestamp for batch in group),
                sum(batch.record_count for batch in group),
                int(self.clock() * 1000),
            )
        return uncopyable

    def is_over(self, deadline: float) -> bool:
        """Whether the deadline has passed."""
        return self.monotonic() >= deadline

    def _position(self, queue: PartitionQueue) -> int:
        return self.batches.position(_routing(queue))

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
        return self._convert_upgraded(queue, frame, header, batch)

    def _convert_upgraded(
        self, queue: PartitionQueue, frame: ResponseFrame, header: BatchHeader, batch: memoryview
    ) -> UncopyableRecord | None:
        position = self._position(queue)
        if header.next_offset <= position:
            return None
        records = [one for one in read_records(header, batch) if one.offset >= position]
        outcomes = self.transform.apply(records)
        if self.failures and outcomes.skipped:
            skipped = frozenset(outcomes.skipped)
            failed = [one for one in records if one.offset in skipped]
            self.failures.add(queue, failed, outcomes.errors)
        is_kept = bool(outcomes.kept or outcomes.routed)
        self.lanes[LaneReason.TRANSFORMED if is_kept else LaneReason.FILTERED] += 1
        self.batches.add(self.batches.target.topic, outcomes.kept, header.codec_id)
        for topic, routed in outcomes.routed.items():
            self.batches.add(topic, routed, header.codec_id)
        self.batches.drop(outcomes.filtered, outcomes.skipped)
        if outcomes.refused is None:
            self.batches.skip_to(header.next_offset)
            return None
        self.batches.skip_to(outcomes.refused.offset)
        return self._flush(queue, frame) or outcomes.refused

    def _flush(self, queue: PartitionQueue, frame: ResponseFrame) -> UncopyableRecord | None:
        oversized, filtered, skipped = self.batches.flush(_routing(queue))
        self.filtered += filtered
        self.skipped += skipped
        return oversized


def _routing(queue: PartitionQueue) -> RoutingQueue:
    assert isinstance(queue, RoutingQueue)
    return queue
