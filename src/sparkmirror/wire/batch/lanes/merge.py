"""Many small consecutive batches become one batch.

A producer without linger writes one batch per record. A broker accepts one batch per partition and
request, so copied one by one they cost a request each, on both sides. Records get the offset deltas
0, 1, 2, ... and timestamps relative to the first batch; keys, values and headers are copied as
bytes and not parsed.

Only for batches that could be forwarded, without compression, with so few records that building
them again is cheaper than another request. Merged batches come from one response: nothing waits.
"""

from __future__ import annotations

from builtins import memoryview
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from sparkmirror.compiled_modules import module_form
from sparkmirror.wire.batch import varint
from sparkmirror.wire.batch.checksum import assemble_batch_from_parts
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import (
    HEADER_BYTES,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    BytesLike,
)
from sparkmirror.wire.batch.records import corrupt_batch, read_zigzag, scan_records

if TYPE_CHECKING:  # only annotations name it, so nothing needs the package at run time
    from mypy_extensions import i64

FEW_RECORDS: Final = 32
"""To rewrite so few records costs less than the request that it saves, in pure Python, too."""
MAX_SMALL_RECORDS: Final = 256 if module_form().is_compiled else FEW_RECORDS
"""A batch with more records is sent alone."""
MAX_MERGED_BYTES: Final = 1 << 17
"""The largest merged batch: as large as a producer with linger makes them."""
MAX_TIME_GAP_MS: Final = 3_600_000
_MAX_RECORD_GROWTH: Final = 12
"""How much a record may grow: its two deltas and its length."""


class SmallBatch(NamedTuple):
    """A verified batch that may be merged."""

    header: BatchHeader
    batch: memoryview


def is_mergeable(header: BatchHeader, max_records: int = MAX_SMALL_RECORDS) -> bool:
    """Whether to merge a batch that could be forwarded."""
    return (
        header.record_count <= max_records
        and header.codec_id == CompressionType.NONE
        and header.size < MAX_MERGED_BYTES // 2
    )


def is_consecutive(before: BatchHeader, header: BatchHeader) -> bool:
    """Whether a batch directly follows another one, with similar timestamps.

    A target may refuse a batch for one record that is too old or too new. Records of another time
    must not be refused with it.
    """
    return (
        before.next_offset == header.base_offset
        and abs(header.max_timestamp - before.max_timestamp) <= MAX_TIME_GAP_MS
        and abs(header.base_timestamp - before.base_timestamp) <= MAX_TIME_GAP_MS
    )


def fits_in_merged(size: int, header: BatchHeader, limit: int) -> bool:
    """Whether one more batch fits into a merged batch of this size, for the target's limit."""
    return size + max_merged_size(header) <= min(MAX_MERGED_BYTES, limit)


def max_merged_size(header: BatchHeader) -> int:
    """The most bytes that a batch adds to a merged one."""
    return header.size + _MAX_RECORD_GROWTH * header.record_count


def merge_batches(batches: Sequence[SmallBatch]) -> bytearray:
    """Build one batch of several with consecutive offsets. Raises BatchError.

    The result has no producer: forward it like a fetched one.
    """
    first = batches[0].header
    parts: list[BytesLike] = []
    count, latest = 0, first.max_timestamp
    for header, batch in batches:
        body = bytes(batch[HEADER_BYTES:])
        later = header.base_timestamp - first.base_timestamp
        _add_renumbered(parts, header, body, count, later)
        count += header.record_count
        latest = max(latest, header.max_timestamp)
    return assemble_batch_from_parts(
        first._replace(
            base_offset=0,
            leader_epoch=NO_EPOCH,
            attributes=int(CompressionType.NONE),
            last_offset_delta=count - 1,
            max_timestamp=latest,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_EPOCH,
            base_sequence=NO_SEQUENCE,
            record_count=count,
        ),
        parts,
    )


def _add_renumbered(
    parts: list[BytesLike], header: BatchHeader, body: bytes, count: int, later: int
) -> None:
    """Add the records of a batch, numbered from `count` on, with timestamps `later`.

    Written for speed: only this function touches every record of an ordinary topic. It scans and
    writes in one pass; the general scan (`scan_records`) is asked what is wrong with a batch.
    """
    try:
        end = _renumber(parts, body, header.record_count, count, later)
    except (IndexError, ValueError):
        end = -1
    if end != len(body):
        scan_records(header, body)
        raise corrupt_batch(header, "has gaps and was about to be merged")


def _renumber(parts: list[BytesLike], body: bytes, records: i64, count: i64, later: int) -> i64:
    """Add renumbered records; return the index behind the last one, or -1 if one is malformed.

    Compiled, its numbers are those of the processor. The first batch is added as it is.
    """
    varints = varint.SMALL_VARINTS
    known: i64 = len(varints)
    front = b""
    start: i64 = 0
    front_stamp: i64 = -1
    front_attributes: i64 = -1
    index: i64
    for index in range(records):
        length: i64 = body[start]
        fields: i64 = start + 1
        if length > 0x7F:
            length, fields = _read_long_zigzag(body, start)
        attributes: i64 = body[fields]
        stamp: i64 = body[fields + 1]
        number: i64 = fields + 2
        if stamp > 0x7F:
            stamp, number = _read_long_zigzag(body, fields + 1)
        delta: i64 = body[number]
        rest: i64 = number + 1
        if delta > 0x7F:
            delta, rest = _read_long_zigzag(body, number)
        end: i64 = fields + (length >> 1)
        if rest > end or delta != index << 1 or length & 1:
            return -1
        if count > 0:
            if stamp != front_stamp or attributes != front_attributes:
                # Most records of a batch have the same two.
                front_stamp, front_attributes = stamp, attributes
                front = body[fields : fields + 1] + varint.encode(
                    (stamp >> 1 ^ -(stamp & 1)) + later
                )
            place: i64 = count + index
            shown = varints[place] if place < known else varint.encode(place)
            length = len(front) + len(shown) + end - rest
            parts.append(varints[length] if length < known else varint.encode(length))
            parts.append(front)
            parts.append(shown)
            parts.append(body[rest:end])
        start = end
    if count == 0:
        parts.append(body)
    return start


def _read_long_zigzag(body: bytes, at: i64) -> tuple[i64, i64]:
    """Read a number of two or more bytes; return its zig-zag form and the index behind it.

    Raises ValueError for a number with which native integers cannot count.
    """
    second: i64 = body[at + 1]
    if second > 0x7F:
        number, after = read_zigzag(body, at)
        if number >> 62:
            raise ValueError(f"a number is too large to be merged, {at} bytes into its records")
        return number, after
    return body[at] - 0x80 + (second << 7), at + 2
