"""The reopen lane: the same records in batches that the target accepts.

A batch is verified, decompressed and scanned. Records below the position are dropped. The others
get the offset deltas 0, 1, 2, ... If the target would not keep the log append time, it is written
as the timestamp of the records. A batch that is too large is cut in half until each half fits. Each
piece is compressed and gets a new header. Keys, values and headers are copied as bytes.

    batch    100 101 102  -  104 | 105 106 107  -   -     as stored; too large, so cut in the middle
    pieces           102     104 | 105 106 107            position 102; offset deltas 0 1 | 0 1 2
    runs           (102,1) (104,1) | (105,3)              source offsets and how many, per piece

The whole batch is cut before the first records are dropped. So the cuts depend only on the batch
and the target: after a restart from any position they are the same, and a piece that was sent
before is sent again with the same records, which the target recognises as a duplicate.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from builtins import memoryview
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from sparkmirror.wire.batch import varint
from sparkmirror.wire.batch.checksum import assemble_batch, verify_crc
from sparkmirror.wire.batch.compression import MAX_DECOMPRESSED_BYTES, compress
from sparkmirror.wire.batch.header import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    BytesLike,
)
from sparkmirror.wire.batch.records import (
    SLOT_END,
    SLOT_OFFSET_DELTA,
    SLOT_START,
    SLOT_TIMESTAMP_DELTA,
    RecordSlot,
    decompress_records,
    scan_records,
)
from sparkmirror.wire.batch.target_limits import TargetLimits

_SMALL_VARINT_COUNT: Final = len(varint.SMALL_VARINTS)
_slot_start = itemgetter(SLOT_START)
_slot_offset_delta = itemgetter(SLOT_OFFSET_DELTA)
_slot_timestamp_delta = itemgetter(SLOT_TIMESTAMP_DELTA)


class SourceRun(NamedTuple):
    """Consecutive source offsets in a piece."""

    first_source_offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReopenedBatch:
    """A batch for the target, without a producer: forward it like a fetched one.

    `runs` are the source offsets of its records in order; their lengths add up to its count.
    """

    batch: bytes
    runs: tuple[SourceRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OversizedRecord:
    """A record too large for the target: alone in a batch it needs `size` bytes."""

    source_offset: int
    size: int
    limit: int


def reopen_batch(
    header: BatchHeader,
    batch: BytesLike,
    position: int,
    target: TargetLimits,
    decompressed_limit: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[ReopenedBatch | OversizedRecord]:
    """Convert a fetched batch for the target; yield pieces in source order. Raises BatchError.

    Yields nothing if compaction has removed all records from the position on.
    """
    verify_crc(header, batch)
    body = decompress_records(header, batch, decompressed_limit)
    return _BatchReopener(header, body, position, target).split()


class _BatchReopener:
    """One batch with its decompressed records."""

    def __init__(
        self, header: BatchHeader, body: bytes, position: int, target: TargetLimits
    ) -> None:
        self._header = header
        self._body = memoryview(body)
        self._slots = scan_records(header, body)
        self._first_slot = bisect_left(
            self._slots, position - header.base_offset, key=_slot_offset_delta
        )
        self._write_append_time = header.is_log_append_time and not target.log_append_time
        self._codec = target.codec_for(header.codec_id)
        self._limit = target.max_batch_bytes

    def split(self) -> Iterator[ReopenedBatch | OversizedRecord]:
        """Cut until all pieces fit. Ranges to check are on a stack, the leftmost on top."""
        whole = (0, len(self._slots))
        ranges = self._split_range(*whole) if self._exceeds_limit_as_is() else [whole]
        while ranges:
            low, high = ranges.pop()
            if high <= self._first_slot:
                continue
            batch = self._assemble(low, high)
            if low < self._first_slot and len(batch) <= self._limit:
                low, batch = self._first_slot, self._assemble(self._first_slot, high)
            if len(batch) <= self._limit:
                yield ReopenedBatch(batch=batch, runs=tuple(self._source_runs(low, high)))
            elif high - low > 1:
                ranges += self._split_range(low, high)
            else:
                yield self._oversized_record(low, len(batch))

    def _exceeds_limit_as_is(self) -> bool:
        """Whether the batch is too large as fetched and stays so: it is cut without a try."""
        return (
            len(self._slots) > 1
            and self._header.size > self._limit
            and self._header.codec_id == self._codec
        )

    def _split_range(self, low: int, high: int) -> list[tuple[int, int]]:
        """Cut a range at the middle of its bytes; the left half comes last, to be popped first."""
        half = (self._slots[low][SLOT_START] + self._slots[high - 1][SLOT_END]) // 2
        middle = bisect_left(self._slots, half, low + 1, high - 1, key=_slot_start)
        return [(middle, high), (low, middle)]

    def _oversized_record(self, at: int, size: int) -> OversizedRecord:
        return OversizedRecord(
            source_offset=self._header.base_offset + self._slots[at][SLOT_OFFSET_DELTA],
            size=size,
            limit=self._limit,
        )

    def _source_runs(self, low: int, high: int) -> Iterator[SourceRun]:
        base = self._header.base_offset
        deltas = list(map(_slot_offset_delta, self._slots[low:high]))
        begin = deltas[0]
        if deltas[-1] - begin == len(deltas) - 1:
            yield SourceRun(base + begin, len(deltas))
            return
        for before, delta in pairwise(deltas):
            if delta != before + 1:
                yield SourceRun(base + begin, before + 1 - begin)
                begin = delta
        yield SourceRun(base + begin, deltas[-1] + 1 - begin)

    def _assemble(self, low: int, high: int) -> bytes:
        """Build a batch of the records of a range."""
        slots = self._slots[low:high]
        body = _renumber_records(self._body, slots, self._write_append_time)
        old = self._header
        base_timestamp = old.max_timestamp if self._write_append_time else old.base_timestamp
        latest_delta = 0 if self._write_append_time else max(map(_slot_timestamp_delta, slots))
        header = old._replace(
            base_offset=0,
            leader_epoch=NO_EPOCH,
            attributes=int(self._codec),
            last_offset_delta=len(slots) - 1,
            base_timestamp=base_timestamp,
            max_timestamp=base_timestamp + latest_delta,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_EPOCH,
            base_sequence=NO_SEQUENCE,
            record_count=len(slots),
        )
        return assemble_batch(header, compress(self._codec, body))


def _renumber_records(
    body: memoryview, slots: Sequence[RecordSlot], clear_deltas: bool
) -> BytesLike:
    """Write the records of a range with the offset deltas 0, 1, 2, ...

    Bytes between two offset deltas are copied at once. The length of a record is written again only
    if its offset delta takes more or fewer bytes than before. `clear_deltas` also sets the
    timestamp deltas to 0.
    """
    same = 0 if clear_deltas else _count_already_numbered(slots)
    mark, end = slots[0][SLOT_START], slots[-1][SLOT_END]
    if same == len(slots):
        return body[mark:end]
    parts: list[BytesLike] = []
    add = parts.append
    for slot, written in zip(
        slots[same:], _encode_deltas(same, len(slots), clear_deltas), strict=True
    ):
        start, fields, number, rest, _, _, after = slot
        if clear_deltas:
            number = fields + 1
        growth = len(written) - (rest - number)
        if growth:
            add(body[mark:start])
            add(varint.encode_non_negative(after - fields + growth))
            mark = fields
        add(body[mark:number])
        add(written)
        mark = rest
    add(body[mark:end])
    return b"".join(parts)


def _count_already_numbered(slots: Sequence[RecordSlot]) -> int:
    """Count the records at the front whose offset deltas are 0, 1, 2, ... as they are.

    Deltas rise, so `delta - index` never falls: once it is not 0, it stays so.
    """
    return bisect_right(
        range(len(slots)), 0, key=lambda index: slots[index][SLOT_OFFSET_DELTA] - index
    )


def _encode_deltas(begin: int, end: int, clear_deltas: bool) -> Iterable[bytes]:
    """Encode offset deltas, each behind a timestamp delta of 0 with `clear_deltas`."""
    plain = chain(
        varint.SMALL_VARINTS[begin:end],
        map(varint.encode, range(max(begin, _SMALL_VARINT_COUNT), end)),
    )
    return map(b"\0".__add__, plain) if clear_deltas else plain
