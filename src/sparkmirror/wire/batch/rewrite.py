"""The transform lane: batches of records whose content was changed, or of which some are dropped.

    source offsets   100 101 102 103 104        102 is dropped
    batch              0   1       2   3        offset deltas
    runs              (100,2)     (103,2)       source offsets and how many

The records get the offset deltas 0, 1, 2, ... and their own timestamps. Records that do not fit
into one batch of the target are cut at the middle of their bytes until each part fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from sparkmirror.wire.batch import varint
from sparkmirror.wire.batch.checksum import assemble_batch
from sparkmirror.wire.batch.compression import CompressionType, compress
from sparkmirror.wire.batch.header import (
    MAGIC,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
)
from sparkmirror.wire.batch.lanes.reopen import OversizedRecord, ReopenedBatch, SourceRun
from sparkmirror.wire.batch.record_headers import encode_header_section
from sparkmirror.wire.batch.records import RecordHeader

_NULL: Final = varint.encode(-1)


class RewrittenRecord(NamedTuple):
    """A record for the target, with the source offset of the record that it was made from."""

    source_offset: int
    timestamp: int
    content: bytes
    """Key, value and headers, as a record of magic 2 holds them."""


def encode_content(
    key: bytes | None, value: bytes | None, headers: Sequence[RecordHeader]
) -> bytes:
    """Encode key, value and headers as a record of magic 2 holds them."""
    parts: list[bytes] = []
    for content in (key, value):
        if content is None:
            parts.append(_NULL)
        else:
            parts += (varint.encode_non_negative(len(content)), content)
    parts.append(encode_header_section(headers))
    return b"".join(parts)


def rewrite_batches(
    records: Sequence[RewrittenRecord], codec: CompressionType, limit: int
) -> Iterator[ReopenedBatch | OversizedRecord]:
    """Build batches of at most `limit` bytes; yield them in source order.

    Source offsets must rise. Yields an OversizedRecord for each record that needs more bytes.
    """
    ranges = [(0, len(records))] if records else []
    while ranges:
        low, high = ranges.pop()
        part = records[low:high]
        batch = _build_batch(part, codec)
        if len(batch) <= limit:
            yield ReopenedBatch(batch=batch, runs=tuple(_source_runs(part)))
        elif high - low > 1:
            middle = low + _middle(part)
            ranges += [(middle, high), (low, middle)]
        else:
            yield OversizedRecord(source_offset=part[0].source_offset, size=len(batch), limit=limit)


def _middle(records: Sequence[RewrittenRecord]) -> int:
    """The number of records in the first half of the bytes; at least one on either side."""
    half = sum(len(record.content) for record in records) // 2
    size = 0
    for index, record in enumerate(records[:-1]):
        size += len(record.content)
        if size >= half:
            return index + 1
    return len(records) - 1


def _source_runs(records: Iterable[RewrittenRecord]) -> Iterator[SourceRun]:
    first, length = 0, 0
    for offset, _, _ in records:
        if offset == first + length:
            length += 1
            continue
        if length:
            yield SourceRun(first, length)
        first, length = offset, 1
    if length:
        yield SourceRun(first, length)


def _build_batch(records: Sequence[RewrittenRecord], codec: CompressionType) -> bytes:
    base_timestamp = records[0].timestamp
    header = BatchHeader(
        base_offset=0,
        length=0,
        leader_epoch=NO_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=int(codec),
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=len(records),
    )
    return assemble_batch(header, compress(codec, _encode(records, base_timestamp)))


def _encode(records: Sequence[RewrittenRecord], base_timestamp: int) -> bytes:
    """Encode records with the offset deltas 0, 1, 2, ...; written for speed."""
    varints, known, write = varint.SMALL_VARINTS, len(varint.SMALL_VARINTS), varint.encode
    parts: list[bytes] = []
    add = parts.append
    for index, (_, timestamp, content) in enumerate(records):
        later = timestamp - base_timestamp
        front = (
            b"\0"
            + (varints[later] if 0 <= later < known else write(later))
            + (varints[index] if index < known else write(index))
        )
        length = len(front) + len(content)
        add((varints[length] if length < known else write(length)) + front)
        add(content)
    return b"".join(parts)
