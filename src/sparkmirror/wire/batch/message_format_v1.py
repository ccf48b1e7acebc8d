"""Messages of magic 0 and 1, older than record batches: read, and upgraded to a batch.

    offset | length | CRC-32 | magic | attributes | (timestamp, magic 1 only) | key | value

The checksum covers what follows it. A compressed message is a wrapper: its value is a compressed
sequence of messages, and its offset is that of the last one inside. Inside, magic 0 has the offsets
of the log; magic 1 has relative offsets, and the last one corresponds to the wrapper's offset.
Magic 0 has no timestamps (-1). In a wrapper with log append time, all messages have its timestamp.

An upgraded batch has the offsets of its messages and then takes a lane like a fetched one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.compression import MAX_DECOMPRESSED_BYTES, CompressionType, decompress
from sparkmirror.wire.batch.header import (
    COMPRESSION_CODEC_MASK,
    LOG_APPEND_TIME,
    BytesLike,
    iter_batches,
)
from sparkmirror.wire.batch.records import Record, build_batch

NO_TIMESTAMP = -1

_MESSAGE_HEADER = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_CRC_RANGE_START = 16

_FLG = 4
_MIN_HEADER_BYTES = 7
_HAS_CONTENT_SIZE = 0x08
_HAS_DICTIONARY = 0x01

_PRIME_1, _PRIME_2, _PRIME_3 = 2_654_435_761, 2_246_822_519, 3_266_489_917
_PRIME_4, _PRIME_5 = 668_265_263, 374_761_393
_WORD = 0xFFFF_FFFF


class _Message(NamedTuple):
    """One message, or one wrapper."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def read_messages(message: BytesLike, limit: int = MAX_DECOMPRESSED_BYTES) -> list[Record]:
    """Read one message of magic 0 or 1, or all messages of a wrapper. Raises BatchError."""
    outer = _parse(message)
    if not outer.attributes & COMPRESSION_CODEC_MASK:
        return [_to_record(outer, outer.offset, outer.timestamp)]
    inner = list(_read_inner_messages(outer, limit))
    if not inner:
        raise _corrupt_message(outer.offset, "wraps nothing")
    shift = 0 if outer.magic == 0 else outer.offset - inner[-1].offset
    append_time = outer.timestamp if outer.attributes & LOG_APPEND_TIME else None
    return [
        _to_record(one, one.offset + shift, one.timestamp if append_time is None else append_time)
        for one in inner
    ]


def upgrade_messages(messages: Sequence[BytesLike], limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """Build a batch of magic 2 from consecutive messages, with the compression of the first.

    A message without a wrapper is one record, so pass many at once. Messages that were fetched
    together depend on chance: the next time the same records may form other batches.
    """
    codec = CompressionType.for_id(messages[0][_MESSAGE_HEADER.size - 1] & COMPRESSION_CODEC_MASK)
    return build_batch(
        [record for message in messages for record in read_messages(message, limit)], codec
    )


def _to_record(message: _Message, offset: int, timestamp: int) -> Record:
    return Record(offset=offset, timestamp=timestamp, key=message.key, value=message.value)


def _parse(message: BytesLike) -> _Message:
    view = memoryview(message)
    offset, _, crc, magic, attributes = _MESSAGE_HEADER.unpack_from(view)
    if zlib.crc32(view[_CRC_RANGE_START:]) != crc:
        raise _corrupt_message(offset, "does not match its checksum")
    at, timestamp = _MESSAGE_HEADER.size, NO_TIMESTAMP
    if magic > 0:
        (timestamp,) = _TIMESTAMP.unpack_from(view, at)
        at += _TIMESTAMP.size
    if magic == 0:
        attributes &= ~LOG_APPEND_TIME
    try:
        key, at = _parse_bytes(view, at)
        value, at = _parse_bytes(view, at)
    except struct.error:
        raise _corrupt_message(offset, "ends early") from None
    if at != len(view):
        raise _corrupt_message(offset, "has parts that do not fill it")
    return _Message(offset, magic, attributes, timestamp, key, value)


def _parse_bytes(view: memoryview, at: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(view, at)
    at += _LENGTH.size
    if length < 0:
        return None, at
    return bytes(view[at : at + length]), at + length


def _read_inner_messages(outer: _Message, limit: int) -> Iterator[_Message]:
    inner_bytes = memoryview(_decompressed_value(outer, limit))
    end = 0
    for span in iter_batches(inner_bytes):
        inner = _parse(inner_bytes[span.start : span.end])
        if inner.magic != outer.magic or inner.attributes & COMPRESSION_CODEC_MASK:
            raise _corrupt_message(outer.offset, "wraps messages of another format")
        end = span.end
        yield inner
    if end != len(inner_bytes):
        raise _corrupt_message(outer.offset, "wraps a message that is cut off")


def _decompressed_value(outer: _Message, limit: int) -> bytes:
    value = outer.value or b""
    try:
        codec = CompressionType.for_id(outer.attributes & COMPRESSION_CODEC_MASK)
        return decompress(
            codec,
            fix_header_checksum(value) if codec == CompressionType.LZ4 else value,
            limit,
        )
    except BatchError as error:
        raise BatchError(f"the message at offset {outer.offset}: {error}") from error


def _corrupt_message(offset: int, what: str) -> BatchError:
    return BatchError(
        f"the message at offset {offset} {what}; stop copying the partition and check the message"
        " at the source"
    )


# -- LZ4 frames of magic 0 -------------------------------------------------------------------------
#
#     magic (4) | FLG | BD | content size (8, by FLG) | dictionary id (4, by FLG) | checksum (1)
#
# The checksum is the second byte of the xxHash-32 of FLG up to the checksum. Clients of magic 0
# hashed the frame's magic too, so no standard reader accepts their frames.


def fix_header_checksum(frame: BytesLike) -> bytes:
    """Return the frame with the correct header checksum. Raises BatchError."""
    if len(frame) < _MIN_HEADER_BYTES:
        raise BatchError(
            f"an lz4 frame of {len(frame)} bytes is too short for its header; stop copying the"
            " partition and check it at the source"
        )
    flags = frame[_FLG]
    checksum_at = (
        6 + (8 if flags & _HAS_CONTENT_SIZE else 0) + (4 if flags & _HAS_DICTIONARY else 0)
    )
    fixed = bytearray(frame)
    fixed[checksum_at : checksum_at + 1] = bytes((xxh32(fixed[_FLG:checksum_at]) >> 8 & 0xFF,))
    return bytes(fixed)


def xxh32(data: BytesLike) -> int:
    """Return the xxHash-32 of fewer than 16 bytes, seed 0. Raises ValueError for more."""
    if len(data) >= 16:
        raise ValueError("only short inputs can be hashed")
    value = _PRIME_5 + len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        value = value + int.from_bytes(data[at : at + 4], "little") * _PRIME_3
        value = _rotate_left(value, 17) * _PRIME_4
    for byte in data[whole:]:
        value = _rotate_left(value + byte * _PRIME_5, 11) * _PRIME_1
    value &= _WORD
    value = (value ^ value >> 15) * _PRIME_2 & _WORD
    value = (value ^ value >> 13) * _PRIME_3 & _WORD
    return value ^ value >> 16


def _rotate_left(value: int, bits: int) -> int:
    value &= _WORD
    return (value << bits | value >> 32 - bits) & _WORD
