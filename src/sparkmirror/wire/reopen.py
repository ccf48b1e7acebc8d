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

from sparkmirror.wire import varint
from sparkmirror.wire.checksum import seal, verify
from sparkmirror.wire.codecs import INFLATED_LIMIT, compress
from sparkmirror.wire.header import (
    NO_EPOCH,
    NO_PRODUCER,
    NO_SEQUENCE,
    Data,
    Header,
)
from sparkmirror.wire.records import (
    END,
    OFFSET_DELTA,
    START,
    TIMESTAMP_DELTA,
    Slot,
    inflate,
    scan,
)
from sparkmirror.wire.target import Target

_TABLE = len(varint.COUNTING)
_start = itemgetter(START)
_offset_delta = itemgetter(OFFSET_DELTA)
_timestamp_delta = itemgetter(TIMESTAMP_DELTA)


class SourceRun(NamedTuple):
    """Consecutive source offsets that lie side by side in a piece."""

    source_first: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A batch for the target, without a producer: forward it like a fetched one.

    `runs` are the source offsets of its records in order; their lengths add up to its count.
    """

    batch: bytes
    runs: tuple[SourceRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Oversized:
    """A record that the target cannot take: alone in a batch it needs `size` bytes."""

    source_offset: int
    size: int
    limit: int


def reopen(
    header: Header,
    batch: Data,
    position: int,
    target: Target,
    inflated_limit: int = INFLATED_LIMIT,
) -> Iterator[Piece | Oversized]:
    """Make a fetched batch fit for the target, as pieces in source order.

    Nothing comes back when compaction has removed every record from the position on: move past it.
    """
    verify(header, batch)
    body = inflate(header, batch, inflated_limit)
    return _Opened(header, body, position, target).pieces()


class _Opened:
    """One batch with its records laid bare."""

    def __init__(self, header: Header, body: bytes, position: int, target: Target) -> None:
        self._header = header
        self._body = memoryview(body)
        self._slots = scan(header, body)
        self._first = bisect_left(self._slots, position - header.base_offset, key=_offset_delta)
        self._bake = header.is_log_append_time and not target.log_append_time
        self._codec = target.codec_for(header.codec_id)
        self._limit = target.max_message_bytes

    def pieces(self) -> Iterator[Piece | Oversized]:
        """Cut until everything fits. What is still to be looked at lies on a stack, left on top."""
        whole = (0, len(self._slots))
        ahead = self._halves(*whole) if self._is_hopeless() else [whole]
        while ahead:
            low, high = ahead.pop()
            if high <= self._first:
                continue
            batch = self._sealed(low, high)
            if low < self._first and len(batch) <= self._limit:
                low, batch = self._first, self._sealed(self._first, high)
            if len(batch) <= self._limit:
                yield Piece(batch=batch, runs=tuple(self._runs(low, high)))
            elif high - low > 1:
                ahead += self._halves(low, high)
            else:
                yield self._oversized(low, len(batch))

    def _is_hopeless(self) -> bool:
        """Whether the batch was too large as it came and will be again: no need to try it whole."""
        return (
            len(self._slots) > 1
            and self._header.size > self._limit
            and self._header.codec_id == self._codec
        )

    def _halves(self, low: int, high: int) -> list[tuple[int, int]]:
        """Cut a range at the middle of its bytes; the left half comes last, to be popped first."""
        half = (self._slots[low][START] + self._slots[high - 1][END]) // 2
        middle = bisect_left(self._slots, half, low + 1, high - 1, key=_start)
        return [(middle, high), (low, middle)]

    def _oversized(self, at: int, size: int) -> Oversized:
        return Oversized(
            source_offset=self._header.base_offset + self._slots[at][OFFSET_DELTA],
            size=size,
            limit=self._limit,
        )

    def _runs(self, low: int, high: int) -> Iterator[SourceRun]:
        base = self._header.base_offset
        deltas = list(map(_offset_delta, self._slots[low:high]))
        begin = deltas[0]
        if deltas[-1] - begin == len(deltas) - 1:
            yield SourceRun(base + begin, len(deltas))
            return
        for before, delta in pairwise(deltas):
            if delta != before + 1:
                yield SourceRun(base + begin, before + 1 - begin)
                begin = delta
        yield SourceRun(base + begin, deltas[-1] + 1 - begin)

    def _sealed(self, low: int, high: int) -> bytes:
        """Seal the records of a range as a batch of their own."""
        slots = self._slots[low:high]
        body = _renumbered(self._body, slots, self._bake)
        old = self._header
        base_timestamp = old.max_timestamp if self._bake else old.base_timestamp
        latest_delta = 0 if self._bake else max(map(_timestamp_delta, slots))
        header = old._replace(
            base_offset=0,
            leader_epoch=NO_EPOCH,
            attributes=int(self._codec),
            last_offset_delta=len(slots) - 1,
            base_timestamp=base_timestamp,
            max_timestamp=base_timestamp + latest_delta,
            producer_id=NO_PRODUCER,
            producer_epoch=NO_EPOCH,
            base_sequence=NO_SEQUENCE,
            record_count=len(slots),
        )
        return seal(header, compress(self._codec, body))


def _renumbered(body: memoryview, slots: Sequence[Slot], bake: bool) -> Data:
    """Write the records of a range with the offset deltas 0, 1, 2, ...

    The bytes between two numbers are copied in one go, from behind one offset delta up to the next.
    A record's length is written anew only where the number takes more or fewer bytes than before.
    """
    same = 0 if bake else _already_numbered(slots)
    mark, end = slots[0][START], slots[-1][END]
    if same == len(slots):
        return body[mark:end]
    parts: list[Data] = []
    add = parts.append
    for slot, written in zip(slots[same:], _numbers(same, len(slots), bake), strict=True):
        start, fields, number, rest, _, _, after = slot
        if bake:
            number = fields + 1
        growth = len(written) - (rest - number)
        if growth:
            add(body[mark:start])
            add(varint.count(after - fields + growth))
            mark = fields
        add(body[mark:number])
        add(written)
        mark = rest
    add(body[mark:end])
    return b"".join(parts)


def _already_numbered(slots: Sequence[Slot]) -> int:
    """Count the records at the front whose offset deltas are 0, 1, 2, ... as they are.

    Deltas rise, so `delta - place` never falls: once it is not 0, it stays so.
    """
    return bisect_right(range(len(slots)), 0, key=lambda place: slots[place][OFFSET_DELTA] - place)


def _numbers(begin: int, end: int, bake: bool) -> Iterable[bytes]:
    """Give offset deltas as bytes, behind a timestamp delta of 0 where time is baked."""
    plain = chain(varint.COUNTING[begin:end], map(varint.encode, range(max(begin, _TABLE), end)))
    return map(b"\0".__add__, plain) if bake else plain
