"""Merging: many small batches that lie side by side become one.

A producer that does not wait writes a batch for every record. A broker takes one batch per
partition and request, so copied one by one they cost a request each, on both sides; merged, they
cost their bytes. Records get the offset deltas 0, 1, 2, ... and times counted from the first batch;
keys, values and headers are moved as bytes and never looked at.

Only for batches that could be forwarded as they are, without compression, and with so few records
each that writing them anew is cheaper than another request. Nothing is waited for: what is merged
came in one answer.
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
"""A batch of more records is worth a request of its own."""
MAX_MERGED_BYTES = 1 << 17
"""What batches are merged up to: as large as a producer that waits would make them."""
MAX_TIME_GAP_MS = 3_600_000
_MAX_RECORD_GROWTH = 12
"""How much longer a record may become: its two deltas and its length."""


class SmallBatch(NamedTuple):
    """A batch that may be merged, verified."""

    header: BatchHeader
    batch: memoryview


def is_mergeable(header: BatchHeader) -> bool:
    """Whether a batch that could be forwarded had better be merged with its neighbours."""
    return (
        header.record_count <= MAX_SMALL_RECORDS
        and header.codec_id == CompressionType.NONE
        and header.size < MAX_MERGED_BYTES // 2
    )


def is_consecutive(before: BatchHeader, header: BatchHeader) -> bool:
    """Whether a batch follows another one, in offsets and in time.

    A target may refuse a batch for one record that is too old or too new for it: those of another
    time must not be refused with it.
    """
    return (
        before.next_offset == header.base_offset
        and abs(header.max_timestamp - before.max_timestamp) <= MAX_TIME_GAP_MS
        and abs(header.base_timestamp - before.base_timestamp) <= MAX_TIME_GAP_MS
    )


def fits_in_merged(size: int, header: BatchHeader, limit: int) -> bool:
    """Whether so many bytes of small batches can take up one more, for a target's limit."""
    return size + max_merged_size(header) <= min(MAX_MERGED_BYTES, limit)


def max_merged_size(header: BatchHeader) -> int:
    """How much a batch may add to a merged one, at the most."""
    return header.size + _MAX_RECORD_GROWTH * header.record_count


def merge_batches(batches: Sequence[SmallBatch]) -> bytearray:
    """Make one batch of several whose offsets follow one another. Raises BatchError.

    The result has no producer: forward it like a fetched one. Written for speed: this is the only
    lane that touches every record of an ordinary topic.
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
