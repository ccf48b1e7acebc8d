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

from sparkmirror.wire import varint
from sparkmirror.wire.checksum import seal_parts
from sparkmirror.wire.codecs import Codec
from sparkmirror.wire.header import (
    HEADER_BYTES,
    NO_EPOCH,
    NO_PRODUCER,
    NO_SEQUENCE,
    Data,
    Header,
)
from sparkmirror.wire.records import scan

MOST_RECORDS = 32
"""A batch of more records is worth a request of its own."""
MOST_BYTES = 1 << 17
"""What batches are merged up to: as large as a producer that waits would make them."""
SAME_TIME_MS = 3_600_000
_GROWTH = 12
"""How much longer a record may become: its two deltas and its length."""


class Small(NamedTuple):
    """A batch that may be merged, verified."""

    header: Header
    batch: memoryview


def is_small(header: Header) -> bool:
    """Whether a batch that could be forwarded had better be merged with its neighbours."""
    return (
        header.record_count <= MOST_RECORDS
        and header.codec_id == Codec.NONE
        and header.size < MOST_BYTES // 2
    )


def belongs(before: Header, header: Header) -> bool:
    """Whether a batch follows another one, in offsets and in time.

    A target may refuse a batch for one record that is too old or too new for it: those of another
    time must not be refused with it.
    """
    return (
        before.next_offset == header.base_offset
        and abs(header.max_timestamp - before.max_timestamp) <= SAME_TIME_MS
        and abs(header.base_timestamp - before.base_timestamp) <= SAME_TIME_MS
    )


def fits(size: int, header: Header, limit: int) -> bool:
    """Whether so many bytes of small batches can take up one more, for a target's limit."""
    return size + merged_size(header) <= min(MOST_BYTES, limit)


def merged_size(header: Header) -> int:
    """How much a batch may add to a merged one, at the most."""
    return header.size + _GROWTH * header.record_count


def merge(batches: Sequence[Small]) -> bytearray:
    """Make one batch of several whose offsets follow one another. Raises BatchError.

    The result has no producer: forward it like a fetched one. Written for speed: this is the only
    lane that touches every record of an ordinary topic.
    """
    first = batches[0].header
    varints, known, write = varint.COUNTING, len(varint.COUNTING), varint.encode
    parts: list[Data] = []
    add = parts.append
    count, latest = 0, first.max_timestamp
    for header, batch in batches:
        body = bytes(batch[HEADER_BYTES:])
        later = header.base_timestamp - first.base_timestamp
        for _, fields, _, rest, _, delta, end in scan(header, body):
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
    return seal_parts(
        first._replace(
            base_offset=0,
            leader_epoch=NO_EPOCH,
            attributes=int(Codec.NONE),
            last_offset_delta=count - 1,
            max_timestamp=latest,
            producer_id=NO_PRODUCER,
            producer_epoch=NO_EPOCH,
            base_sequence=NO_SEQUENCE,
            record_count=count,
        ),
        parts,
    )
