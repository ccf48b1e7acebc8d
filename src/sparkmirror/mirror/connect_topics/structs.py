"""Kafka's struct encoding: fields in sequence, big-endian, no padding, no tags.

There are three integer types and a string with a 16-bit length. The error for a field that cannot
be decoded names the field, as Kafka's own error does.
"""

from __future__ import annotations

import struct

from sparkmirror.errors import RecordError

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")

LONGEST_STRING = 32767


def int16(number: int) -> bytes:
    """Encode a signed 16-bit integer."""
    return _pack(_INT16, number)


def int32(number: int) -> bytes:
    """Encode a signed 32-bit integer."""
    return _pack(_INT32, number)


def int64(number: int) -> bytes:
    """Encode a signed 64-bit integer."""
    return _pack(_INT64, number)


def string(text: str) -> bytes:
    """Encode a string: its length in bytes, then UTF-8. An unpaired surrogate becomes `?`."""
    raw = text.encode("utf-8", errors="replace")
    if len(raw) > LONGEST_STRING:
        raise RecordError(
            f"String length {len(raw)} is larger than the maximum string length {LONGEST_STRING}."
        )
    return _INT16.pack(len(raw)) + raw


def _pack(layout: struct.Struct, number: int) -> bytes:
    try:
        return layout.pack(number)
    except struct.error as error:
        raise RecordError(f"{number} does not fit in {layout.size} bytes") from error


class StructReader:
    """Decodes fields in order. Bytes after the last field are ignored, as in Kafka."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes | None, what: str) -> None:
        if data is None:
            raise RecordError(f"The record has no {what}")
        self._data = data
        self._at = 0

    def int16(self, field: str) -> int:
        """Read a signed 16-bit integer."""
        return self._unpack(_INT16, field)

    def int32(self, field: str) -> int:
        """Read a signed 32-bit integer."""
        return self._unpack(_INT32, field)

    def int64(self, field: str) -> int:
        """Read a signed 64-bit integer."""
        return self._unpack(_INT64, field)

    def string(self, field: str) -> str:
        """Read a string. Bytes that are not UTF-8 become replacement characters."""
        length = self._unpack(_INT16, field)
        left = len(self._data) - self._at
        if length < 0:
            raise _unreadable(field, f"String length {length} cannot be negative")
        if length > left:
            raise _unreadable(
                field, f"Error reading string of length {length}, only {left} bytes available"
            )
        raw = self._data[self._at : self._at + length]
        self._at += length
        return raw.decode("utf-8", errors="replace")

    def _unpack(self, layout: struct.Struct, field: str) -> int:
        left = len(self._data) - self._at
        if left < layout.size:
            raise _unreadable(field, f"{layout.size} bytes needed, only {left} available")
        (number,) = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return int(number)


def _unreadable(field: str, why: str) -> RecordError:
    return RecordError(f"Error reading field '{field}': {why}")
