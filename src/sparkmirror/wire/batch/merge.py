"""Many small consecutive batches become one batch.

A producer without linger writes one batch per record. A broker accepts one batch per partition and
request, so copied one by one they cost a request each, on both sides. Records get the offset deltas
0, 1, 2, ... and timestamps relative to the first batch; keys, values and headers are copied as
bytes and not parsed.

Only for batches that could be forwarded, without compression, with so few records that building
them again is cheaper than another request. Merged batches come from one response: nothing waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
from sparkmirror.wire.batch.records import scan_records

MAX_SMALL_RECORDS = 32
"""A batch with more records is sent alone."""
MAX_MERGED_BYTES = 1 << 17
"""The largest merged batch: as large as a producer with linger makes them."""
MAX_TIME_GAP_MS = 3_600_000
_MAX_RECORD_GROWTH = 12
"""How much a record may grow: its two deltas and its length."""


class SmallBatch(NamedTuple):
    """A verified batch that may be merged."""

    header: BatchHeader
    batch: memoryview


def is_mergeable(header: BatchHeader) -> bool:
    """Whether to merge a batch that could be forwarded."""
    return (
        header.record_count <= MAX_SMALL_RECORDS
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

    The result has no producer: forward it like a fetched one. Written for speed: only this lane
    touches every record of an ordinary topic.
    """
    first = batches[0].header
    varints, known, write = varint.SMALL_VARINTS, len(varint.SMALL_VARINTS), varint.encode
    parts: list[BytesLike] = []
    add = parts.append
    count, latest = 0, first.max_timestamp
    for header, batch in batches:
        body = bytes(batch[HEADER_BYTES:])
        later = header.base_timestamp - first.base_timestamp
        for _, fields, _, rest, _, delta, end in scan_records(header, body):
            stamp = delta + later
            front = (
                body[fields : fields + 1]
                + (varints[stamp] if 0 <= stamp < known else write(stamp))
                + (varints[count] if count < known else write(count))
            )
            length = len(front) + end - rest
            add((varints[length] if length < known else write(length)) + front)
            add(body[rest:end])
            count += 1
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
