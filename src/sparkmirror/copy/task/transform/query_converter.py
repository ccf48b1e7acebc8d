"""Converts fetched batches whose records are rows of the connector's query.

One evaluation takes some milliseconds, however few rows it has. So the records of several batches
of a response wait until there are enough of them, or the response ends:

    batches of a response    b1 b2 b3 (marker) b4 | b5 b6
    evaluated at once        b1 b2 b3 (marker) b4   b5 b6       one evaluation each side of the cut

What must be skipped between them waits too: the position never passes a record without an outcome.
"""

from __future__ import annotations

from builtins import memoryview
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sparkmirror.copy.task.batch_converter import UncopyableRecord
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.transform.query_transform import CREATE_TIME, QueryTransform
from sparkmirror.copy.task.transform.record_evaluator import RecordRow
from sparkmirror.copy.task.transform.transforming_converter import TransformingConverter
from sparkmirror.wire.batch.header import BatchHeader
from sparkmirror.wire.batch.lanes.lane_reason import Lane, LaneReason
from sparkmirror.wire.batch.records import read_records
from sparkmirror.wire.net.buffer_pool import ResponseFrame

MAX_WAITING_ROWS: Final = 2000
MAX_WAITING_BYTES: Final = 1 << 20
"""How much is evaluated at once, as bytes of batches. It bounds how long a task is blocked."""
LOG_APPEND_TIME: Final = 1


class WaitingBatch(NamedTuple):
    """A batch whose records wait for their evaluation; without rows if it is skipped."""

    header: BatchHeader
    batch: memoryview
    rows: tuple[RecordRow, ...]


@dataclass(slots=True, kw_only=True)
class QueryConverter(TransformingConverter):
    """Converts what is fetched of one queue, with a query."""

    query: QueryTransform
    _waiting: list[WaitingBatch] = field(default_factory=list)
    """Empty between two calls of `convert`."""
    _waiting_rows: int = 0
    _waiting_bytes: int = 0

    def _position(self, queue: PartitionQueue) -> int:
        collected = self.batches.position(queue)
        return max(collected, self._waiting[-1].header.next_offset) if self._waiting else collected

    def _convert_in_lane(
        self,
        queue: PartitionQueue,
        frame: ResponseFrame,
        header: BatchHeader,
        batch: memoryview,
        reason: LaneReason,
    ) -> UncopyableRecord | None:
        if reason.lane is Lane.SKIP and self._waiting:
            self.lanes[reason] += 1
            self._waiting.append(WaitingBatch(header, batch, ()))
            return None
        # The parent's dataclass has slots, so that super() without arguments does not work here.
        return TransformingConverter._convert_in_lane(self, queue, frame, header, batch, reason)

    def _transform(
        self, queue: PartitionQueue, header: BatchHeader, batch: memoryview
    ) -> UncopyableRecord | None:
        position = self._position(queue)
        timestamp_type = LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME
        rows = tuple(
            [
                RecordRow(record, timestamp_type)
                for record in read_records(header, batch)
                if record.offset >= position
            ]
        )
        self._waiting.append(WaitingBatch(header, batch, rows))
        self._waiting_rows += len(rows)
        self._waiting_bytes += len(batch)
        if self._waiting_rows >= MAX_WAITING_ROWS or self._waiting_bytes >= MAX_WAITING_BYTES:
            return self._evaluate(queue)
        return None

    def _evaluate(self, queue: PartitionQueue) -> UncopyableRecord | None:
        """Collect what the query gives for the waiting rows, up to a record that is refused."""
        waiting, self._waiting = self._waiting, []
        self._waiting_rows = self._waiting_bytes = 0
        evaluated = self.query.apply_to_batches([one.rows for one in waiting])
        for (header, batch, rows), outcomes in zip(waiting, evaluated, strict=False):
            if not rows:
                self.batches.skip_to(header.next_offset)
                continue
            uncopyable = self._collect(queue, header, batch, outcomes)
            if uncopyable:
                return uncopyable
        return None

    def _flush(self, queue: PartitionQueue, frame: ResponseFrame) -> UncopyableRecord | None:
        return self._evaluate(queue) or TransformingConverter._flush(self, queue, frame)
