"""The reopen lane: the same records in batches that the target can take.

A batch is verified, inflated and scanned; records below the position are dropped; the rest get the
offset deltas 0, 1, 2, ...; log append time is baked into the records when the target would not keep
it; what is too large is cut in half until each half fits; each piece is compressed and sealed anew.
Keys, values and headers are moved as bytes and never looked at.

    batch    100 101 102  -  104 | 105 106 107  -   -     as stored; too large, so cut in the middle
    pieces           102     104 | 105 106 107            position 102; offset deltas 0 1 | 0 1 2
    runs           (102,1) (104,1) | (105,3)              source offsets and how many, per piece

The cuts are made in the whole batch, before the head is dropped. So they depend on the batch and
the target alone: a restart from any position finds the same borders, and a piece that was sent
before is sent again as the same range of records, which the target recognises.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from typing import NamedTuple

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

_SMALL_VARINT_COUNT = len(varint.SMALL_VARINTS)
_slot_start = itemgetter(SLOT_START)
_slot_offset_delta = itemgetter(SLOT_OFFSET_DELTA)
_slot_timestamp_delta = itemgetter(SLOT_TIMESTAMP_DELTA)


class SourceRun(NamedTuple):
    """Consecutive source offsets that lie side by side in a piece."""

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
    """A record that the target cannot take: alone in a batch it needs `size` bytes."""

    source_offset: int
    size: int
    limit: int


def reopen_batch(
    header: BatchHeader,
    batch: BytesLike,
    position: int,
    target: TargetLimits,
    inflated_limit: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[ReopenedBatch | OversizedRecord]:
    """Make a fetched batch fit for the target, as pieces in source order.

    Nothing comes back when compaction has removed every record from the position on: move past it.
    """
    verify_crc(header, batch)
    body = decompress_records(header, batch, inflated_limit)
    return _BatchReopener(header, body, position, target).split()


class _BatchReopener:
    """One batch with its records laid bare."""

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
        self._limit = target.max_message_bytes

    def split(self) -> Iterator[ReopenedBatch | OversizedRecord]:
        """Cut until everything fits. What is still to be looked at lies on a stack, left on top."""
        whole = (0, len(self._slots))
        ahead = self._split_range(*whole) if self._exceeds_limit_as_is() else [whole]
        while ahead:
            low, high = ahead.pop()
            if high <= self._first_slot:
                continue
            batch = self._assemble(low, high)
            if low < self._first_slot and len(batch) <= self._limit:
                low, batch = self._first_slot, self._assemble(self._first_slot, high)
            if len(batch) <= self._limit:
                yield ReopenedBatch(batch=batch, runs=tuple(self._source_runs(low, high)))
            elif high - low > 1:
                ahead += self._split_range(low, high)
            else:
                yield self._oversized_record(low, len(batch))

    def _exceeds_limit_as_is(self) -> bool:
        """Whether the batch was too large as it came and will be again: no need to try it whole."""
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
        """Seal the records of a range as a batch of their own."""
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


def _renumber_records(body: memoryview, slots: Sequence[RecordSlot], bake: bool) -> BytesLike:
    """Write the records of a range with the offset deltas 0, 1, 2, ...

    The bytes between two numbers are copied in one go, from behind one offset delta up to the next.
    A record's length is written anew only where the number takes more or fewer bytes than before.
    """
    same = 0 if bake else _count_already_numbered(slots)
    mark, end = slots[0][SLOT_START], slots[-1][SLOT_END]
    if same == len(slots):
        return body[mark:end]
    parts: list[BytesLike] = []
    add = parts.append
    for slot, written in zip(slots[same:], _encode_deltas(same, len(slots), bake), strict=True):
        start, fields, number, rest, _, _, after = slot
        if bake:
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

    Deltas rise, so `delta - place` never falls: once it is not 0, it stays so.
    """
    return bisect_right(
        range(len(slots)), 0, key=lambda place: slots[place][SLOT_OFFSET_DELTA] - place
    )


def _encode_deltas(begin: int, end: int, bake: bool) -> Iterable[bytes]:
    """Give offset deltas as bytes, behind a timestamp delta of 0 where time is baked."""
    plain = chain(
        varint.SMALL_VARINTS[begin:end],
        map(varint.encode, range(max(begin, _SMALL_VARINT_COUNT), end)),
    )
    return map(b"\0".__add__, plain) if bake else plain
