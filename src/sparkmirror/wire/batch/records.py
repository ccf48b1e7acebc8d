"""The records of a batch of magic 2: scanned, read, or built into a batch.

    record   length | attributes | timestamp delta | offset delta | key | value | headers

All numbers but the attributes byte are zig-zag varints; the length counts what follows it. A key, a
value or a header's value of length -1 is null, which is not the same as empty. Header names stay
bytes: a name that is not UTF-8 must arrive as it was sent.

`scan_records` finds the numbers of each record without parsing keys, values and headers. Reopening
a batch is based on it. It is written for speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch import varint
from sparkmirror.wire.batch.checksum import assemble_batch
from sparkmirror.wire.batch.compression import (
    MAX_DECOMPRESSED_BYTES,
    CompressionType,
    compress,
    decompress,
)
from sparkmirror.wire.batch.header import (
    HEADER_BYTES,
    MAGIC,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    BytesLike,
)

RecordHeader: TypeAlias = tuple[bytes, bytes | None]

RecordSlot: TypeAlias = tuple[int, int, int, int, int, int, int]
"""The indexes of one record in the decompressed records, and its two deltas: start, fields, number,
rest, offset delta, timestamp delta, end. A plain tuple, for speed.

    start    fields                         number         rest                  end
    | length | attributes | timestamp delta | offset delta | key, value, headers |
"""
SLOT_START: Final = 0
SLOT_OFFSET_DELTA: Final = 4
SLOT_TIMESTAMP_DELTA: Final = 5
SLOT_END: Final = 6


class Record(NamedTuple):
    """One record as a consumer sees it, with its offset in the log."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()


def corrupt_batch(header: BatchHeader, what: str) -> BatchError:
    """The error for records that contradict themselves or their header."""
    return BatchError(
        f"the batch at offset {header.base_offset} {what}; stop copying the partition and check the"
        " batch at the source"
    )


def decompress_records(
    header: BatchHeader, batch: BytesLike, limit: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Decompress the records of a batch. Raises BatchError."""
    try:
        return decompress(
            CompressionType.for_id(header.codec_id), memoryview(batch)[HEADER_BYTES:], limit
        )
    except BatchError as error:
        raise BatchError(f"the batch at offset {header.base_offset}: {error}") from error


def scan_records(header: BatchHeader, body: bytes) -> list[RecordSlot]:
    """Find every record in the decompressed records of a batch. Raises BatchError.

    The result has as many records as the header says, without gaps between their bytes. Their
    offset deltas rise, from 0 or more to at most the last offset delta.
    """
    try:
        slots, end = _scan_slots(body, header.record_count)
    except IndexError:
        raise corrupt_batch(header, "ends in the middle of a record") from None
    except ValueError as error:
        raise corrupt_batch(header, f"holds {error}") from error
    if len(slots) != header.record_count or end != len(body):
        raise corrupt_batch(header, f"does not hold the {header.record_count} records it claims")
    if slots and slots[-1][SLOT_OFFSET_DELTA] > header.last_offset_delta:
        raise corrupt_batch(header, "holds an offset beyond its own end")
    return slots


def _scan_slots(body: bytes, count: int) -> tuple[list[RecordSlot], int]:
    """Scan up to `count` records; stop at the first malformed one.

    Numbers of one and two bytes are read inline: a call for each would double the time.
    """
    slots: list[RecordSlot] = []
    start, before = 0, -1
    for _ in range(count):
        length, fields = body[start], start + 1
        if length > 0x7F:
            length, fields = length - 0x80 + (body[fields] << 7), fields + 1
            if length > 0x3FFF:
                length, fields = read_zigzag(body, start)
        stamp, number = body[fields + 1], fields + 2
        if stamp > 0x7F:
            stamp, number = stamp - 0x80 + (body[number] << 7), number + 1
            if stamp > 0x3FFF:
                stamp, number = read_zigzag(body, fields + 1)
        delta, rest = body[number], number + 1
        if delta > 0x7F:
            delta, rest = delta - 0x80 + (body[rest] << 7), rest + 1
            if delta > 0x3FFF:
                delta, rest = read_zigzag(body, number)
        end = fields + (length >> 1)
        if rest > end or delta >> 1 <= before or (length | delta) & 1:
            break
        before = delta >> 1
        slots.append((start, fields, number, rest, before, (stamp >> 1) ^ -(stamp & 1), end))
        start = end
    return slots, start


def read_zigzag(body: bytes, at: int) -> tuple[int, int]:
    """Read a long number; return its zig-zag form."""
    number, after = varint.decode(body, at)
    return (number << 1) ^ (number >> 63), after


def read_records(
    header: BatchHeader, batch: BytesLike, limit: int = MAX_DECOMPRESSED_BYTES
) -> list[Record]:
    """Read all records of a batch. Raises BatchError."""
    body = decompress_records(header, batch, limit)
    try:
        return [_read_record(header, body, slot) for slot in scan_records(header, body)]
    except IndexError:
        raise corrupt_batch(header, "ends in the middle of a record") from None
    except ValueError as error:
        raise corrupt_batch(header, f"holds {error}") from error


def _read_record(header: BatchHeader, body: bytes, slot: RecordSlot) -> Record:
    _, _, _, at, offset_delta, timestamp_delta, end = slot
    key, at = _read_bytes(body, at)
    value, at = _read_bytes(body, at)
    pairs, at = varint.decode(body, at)
    headers: list[RecordHeader] = []
    for _ in range(pairs):
        name, at = _read_bytes(body, at)
        content, at = _read_bytes(body, at)
        if name is None:
            raise corrupt_batch(header, "holds a record header without a name")
        headers.append((name, content))
    if at != end or pairs < 0:
        raise corrupt_batch(
            header, f"holds a record whose parts do not fill it, at +{offset_delta}"
        )
    return Record(
        offset=header.base_offset + offset_delta,
        timestamp=header.max_timestamp
        if header.is_log_append_time
        else header.base_timestamp + timestamp_delta,
        key=key,
        value=value,
        headers=tuple(headers),
    )


def _read_bytes(body: bytes, at: int) -> tuple[bytes | None, int]:
    length = body[at]
    if length < 0x80:  # of one byte, as most are
        if length & 1:
            return None, at + 1
        end = at + 1 + (length >> 1)
        return body[at + 1 : end], end
    length, at = varint.decode(body, at)
    if length < 0:
        return None, at
    return body[at : at + length], at + length


def build_batch(records: Sequence[Record], codec: CompressionType = CompressionType.NONE) -> bytes:
    """Build a batch of records with their offsets, which must rise and may have gaps.

    The batch has no producer: `forward_batch` adds one. Raises ValueError.
    """
    first, last = records[0], records[-1]
    if any(b.offset <= a.offset for a, b in zip(records, records[1:], strict=False)):
        raise ValueError("the offsets of the records of a batch must rise")
    body = b"".join(_encode_records(records, first.offset, first.timestamp))
    header = BatchHeader(
        base_offset=first.offset,
        length=0,
        leader_epoch=NO_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=codec,
        last_offset_delta=last.offset - first.offset,
        base_timestamp=first.timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=len(records),
    )
    return assemble_batch(header, compress(codec, body))


def _encode_records(records: Iterable[Record], base: int, base_timestamp: int) -> Iterable[bytes]:
    for record in records:
        parts = [
            b"\0",
            varint.encode(record.timestamp - base_timestamp),
            varint.encode(record.offset - base),
            *_encode_bytes(record.key),
            *_encode_bytes(record.value),
            varint.encode(len(record.headers)),
        ]
        for name, content in record.headers:
            parts += _encode_bytes(name)
            parts += _encode_bytes(content)
        content = b"".join(parts)
        yield varint.encode(len(content))
        yield content


def _encode_bytes(content: bytes | None) -> tuple[bytes, bytes]:
    if content is None:
        return varint.encode(-1), b""
    return varint.encode(len(content)), content
