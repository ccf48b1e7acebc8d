"""Messages of magic 0 and 1, from before record batches: read them, and build a batch from them.

    offset | length | CRC-32 | magic | attributes | (timestamp, magic 1 only) | key | value

The checksum covers what follows it. A compressed message is a wrapper: its value is a compressed
row of messages, and its offset is that of the last one inside. Inside, magic 0 has the offsets of
the log; magic 1 counts on its own, and its last number stands for the wrapper's offset. Magic 0 has
no timestamps (-1). A wrapper with log append time lends its timestamp to everything inside.

An upgraded batch lies at the offsets of its messages and then takes a lane like a fetched one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sparkmirror.errors import BatchError
from sparkmirror.wire import lz4frame
from sparkmirror.wire.codecs import INFLATED_LIMIT, Codec, decompress
from sparkmirror.wire.header import CODEC_BITS, LOG_APPEND_TIME, Data, batches
from sparkmirror.wire.records import Record, build

NO_TIMESTAMP = -1

_FRONT = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_CHECKED_FROM = 16


class _Message(NamedTuple):
    """One message, or one wrapper."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def read(message: Data, limit: int = INFLATED_LIMIT) -> list[Record]:
    """Read one message of magic 0 or 1 from a fetched buffer: itself, or all that it wraps."""
    outer = _parse(message)
    if not outer.attributes & CODEC_BITS:
        return [_record(outer, outer.offset, outer.timestamp)]
    inner = list(_unwrapped(outer, limit))
    if not inner:
        raise _damaged(outer.offset, "wraps nothing")
    shift = 0 if outer.magic == 0 else outer.offset - inner[-1].offset
    lent = outer.timestamp if outer.attributes & LOG_APPEND_TIME else None
    return [
        _record(one, one.offset + shift, one.timestamp if lent is None else lent) for one in inner
    ]


def upgrade(messages: Sequence[Data], limit: int = INFLATED_LIMIT) -> bytes:
    """Build the batch of magic 2 that holds consecutive messages, compressed as the first one was.

    Messages without a wrapper are batches of one record, so give many at once. Which ones were
    fetched together is chance: the same records may be cut otherwise the next time.
    """
    codec = Codec.of(messages[0][_FRONT.size - 1] & CODEC_BITS)
    return build([record for message in messages for record in read(message, limit)], codec)


def _record(message: _Message, offset: int, timestamp: int) -> Record:
    return Record(offset=offset, timestamp=timestamp, key=message.key, value=message.value)


def _parse(message: Data) -> _Message:
    view = memoryview(message)
    offset, _, crc, magic, attributes = _FRONT.unpack_from(view)
    if zlib.crc32(view[_CHECKED_FROM:]) != crc:
        raise _damaged(offset, "does not match its checksum")
    at, timestamp = _FRONT.size, NO_TIMESTAMP
    if magic > 0:
        (timestamp,) = _TIMESTAMP.unpack_from(view, at)
        at += _TIMESTAMP.size
    if magic == 0:
        attributes &= ~LOG_APPEND_TIME
    try:
        key, at = _parse_bytes(view, at)
        value, at = _parse_bytes(view, at)
    except struct.error:
        raise _damaged(offset, "ends early") from None
    if at != len(view):
        raise _damaged(offset, "has parts that do not fill it")
    return _Message(offset, magic, attributes, timestamp, key, value)


def _parse_bytes(view: memoryview, at: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(view, at)
    at += _LENGTH.size
    if length < 0:
        return None, at
    return bytes(view[at : at + length]), at + length


def _unwrapped(outer: _Message, limit: int) -> Iterator[_Message]:
    row = memoryview(_inflated(outer, limit))
    end = 0
    for span in batches(row):
        inner = _parse(row[span.start : span.end])
        if inner.magic != outer.magic or inner.attributes & CODEC_BITS:
            raise _damaged(outer.offset, "wraps messages of another format")
        end = span.end
        yield inner
    if end != len(row):
        raise _damaged(outer.offset, "wraps a message that is cut off")


def _inflated(outer: _Message, limit: int) -> bytes:
    value = outer.value or b""
    try:
        codec = Codec.of(outer.attributes & CODEC_BITS)
        return decompress(codec, lz4frame.mended(value) if codec == Codec.LZ4 else value, limit)
    except BatchError as error:
        raise BatchError(f"the message at offset {outer.offset}: {error}") from error


def _damaged(offset: int, what: str) -> BatchError:
    return BatchError(
        f"the message at offset {offset} {what}; stop copying the partition and check the message"
        " at the source"
    )
