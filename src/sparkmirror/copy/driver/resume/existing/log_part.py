"""A part of a partition log: its records as a read_committed consumer sees them. Pure.

    offsets     10    11    12    13    14    15
    log         a     b     marker      (hole)c       a part of 10 to 16: records a, b, c; marker 12
                                  aborted

An offset without a record is explained if a marker or an aborted record lies there. Any other
missing offset is a hole: compaction removed the record.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from sparkmirror.wire.batch import records
from sparkmirror.wire.batch.aborted_transactions import AbortedTransactionFilter
from sparkmirror.wire.batch.header import (
    MAGIC,
    BatchHeader,
    BytesLike,
    iter_batches,
    read_header,
)
from sparkmirror.wire.batch.message_format_v1 import read_messages
from sparkmirror.wire.batch.records import Record, RecordHeader
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import SingleFetchResult

Content: TypeAlias = tuple[bytes | None, bytes | None, tuple[RecordHeader, ...]]


class LoggedRecord(NamedTuple):
    """One record: key, value and headers, and its timestamp if a producer has set it."""

    offset: int
    content: Content
    timestamp: int
    has_producer_time: bool
    """Whether the timestamp was written with the record. The broker has set any other one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """The records from `start` up to `end`, and the explained offsets between them."""

    start: int
    end: int
    records: tuple[LoggedRecord, ...] = ()
    explained: tuple[int, ...] = ()
    """Sorted."""

    def holes_before(self, index: int) -> int:
        """Return how many records are missing between a record and the one before it."""
        offset = self.records[index].offset
        first = self.records[index - 1].offset + 1 if index else self.start
        explained = bisect_left(self.explained, offset) - bisect_left(self.explained, first)
        return offset - first - explained

    @property
    def has_holes(self) -> bool:
        """Whether compaction has removed a record."""
        explained = sum(self.start <= offset < self.end for offset in self.explained)
        return len(self.records) + explained < self.end - self.start

    def joined(self, later: LogPart) -> LogPart:
        """Return this part and the one that begins where it ends, or before."""
        kept = [record for record in self.records if record.offset < later.start]
        return LogPart(
            start=min(self.start, later.start),
            end=later.end,
            records=(*kept, *later.records),
            explained=tuple(sorted({*self.explained, *later.explained})),
        )

    def up_to(self, end: int) -> LogPart:
        """Return the part below an offset."""
        return LogPart(
            start=self.start,
            end=min(self.end, end),
            records=tuple(record for record in self.records if record.offset < end),
            explained=self.explained,
        )


def same_record(source: LoggedRecord, target: LoggedRecord) -> bool:
    """Whether a target record may be the copy of a source record.

    A remote topic with LogAppendTime has replaced the timestamp.
    """
    return source.content == target.content and (
        not target.has_producer_time or source.timestamp == target.timestamp
    )


def read_log_part(offset: int, fetched: SingleFetchResult, *, read_committed: bool) -> LogPart:
    """Return the part of a log that one fetch from an offset on has brought. Raises BatchError.

    It begins before the offset if the first batch does.
    """
    is_aborted = AbortedTransactionFilter(
        fetched.aborted_transactions if read_committed else ()
    ).is_aborted
    found: list[LoggedRecord] = []
    explained: set[int] = set()
    start = end = offset
    for span in iter_batches(fetched.records):
        batch = fetched.records[span.start : span.end]
        if span.magic < MAGIC:
            old = [_logged(record, has_producer_time=True) for record in read_messages(batch)]
            found += old
            start, end = min(start, old[0].offset), max(end, old[-1].offset + 1)
            continue
        base_offset, next_offset = _read_batch(batch, is_aborted, found, explained)
        start, end = min(start, base_offset), max(end, next_offset)
    return LogPart(start=start, end=end, records=tuple(found), explained=tuple(sorted(explained)))


def _read_batch(
    batch: bytes,
    is_aborted: Callable[[BatchHeader, BytesLike], bool],
    found: list[LoggedRecord],
    explained: set[int],
) -> tuple[int, int]:
    """Add what a batch holds; return its first offset and the one after it."""
    header = read_header(batch)
    if is_aborted(header, batch) or header.is_control:
        explained.update(range(header.base_offset, header.next_offset))
    else:
        has_time = not header.is_log_append_time
        found += [
            _logged(record, has_producer_time=has_time)
            for record in records.read_records(header, batch)
        ]
    return header.base_offset, header.next_offset


def _logged(record: Record, *, has_producer_time: bool) -> LoggedRecord:
    return LoggedRecord(
        offset=record.offset,
        content=(record.key, record.value, record.headers),
        timestamp=record.timestamp,
        has_producer_time=has_producer_time and record.timestamp >= 0,
    )
