"""Kafka's primitive types, as requests and responses contain them.

Two formats. The older one writes the length of a string in two bytes and of an array in four. The
flexible one (KIP-482) writes each length as an unsigned varint, plus one (0 means null), and ends
each structure with tagged fields; a reader skips tags that it does not know. Readers take a buffer
and an index and return the value and the index after it. They raise ValueError for malformed bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sparkmirror.wire.batch.header import BytesLike

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
UUID_BYTES: Final = 16
EMPTY_TAG_BUFFER: Final = b"\x00"
NO_TAGGED_FIELDS: Final[Mapping[int, memoryview]] = MappingProxyType({})
"""The tagged fields of nearly every structure."""

_MAX_UVARINT_BYTES: Final = 5


def encode_uvarint(number: int) -> bytes:
    """Encode an unsigned number: seven bits per byte, low bits first."""
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_uvarint(data: BytesLike, at: int) -> tuple[int, int]:
    """Read an unsigned number of up to 32 bits."""
    first = data[at]
    if first < 0x80:
        return first, at + 1
    number = first & 0x7F
    for index in range(1, _MAX_UVARINT_BYTES):
        byte = data[at + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, at + index + 1
    raise ValueError(f"the number at byte {at} does not end")


def encode_string(text: str | None) -> bytes:
    """Encode a string of the older format; None is null."""
    if text is None:
        return INT16.pack(-1)
    encoded = text.encode()
    return INT16.pack(len(encoded)) + encoded


def encode_compact_string(text: str | None) -> bytes:
    """Encode a string of the flexible format; None is null."""
    if text is None:
        return b"\x00"
    encoded = text.encode()
    return encode_uvarint(len(encoded) + 1) + encoded


def read_string(data: memoryview, at: int) -> tuple[str | None, int]:
    """Read a string of the older format."""
    (length,) = INT16.unpack_from(data, at)
    at += INT16.size
    return (None, at) if length < 0 else _read_text(data, at, length)


def read_compact_string(data: memoryview, at: int) -> tuple[str | None, int]:
    """Read a string of the flexible format."""
    length, at = read_uvarint(data, at)
    return (None, at) if length == 0 else _read_text(data, at, length - 1)


def read_array_length(data: memoryview, at: int) -> tuple[int, int]:
    """Read how many items an array of the older format has; a null array has none."""
    (count,) = INT32.unpack_from(data, at)
    return max(count, 0), at + INT32.size


def read_compact_array_length(data: memoryview, at: int) -> tuple[int, int]:
    """Read how many items an array of the flexible format has; a null array has none."""
    count, at = read_uvarint(data, at)
    return max(count - 1, 0), at


def read_uuid_bytes(data: memoryview, at: int) -> tuple[bytes, int]:
    """Read a topic id."""
    return bytes(slice_exactly(data, at, UUID_BYTES)), at + UUID_BYTES


def read_tagged_fields(data: memoryview, at: int) -> tuple[Mapping[int, memoryview], int]:
    """Read the tagged fields that end a structure, each as its undecoded bytes."""
    if data[at] == 0:
        return NO_TAGGED_FIELDS, at + 1
    count, at = read_uvarint(data, at)
    tags = {}
    for _ in range(count):
        tag, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        tags[tag] = slice_exactly(data, at, size)
        at += size
    return tags, at


def slice_exactly(data: memoryview, at: int, size: int) -> memoryview:
    """Return a view of exactly `size` bytes. Raises ValueError if there are fewer."""
    end = at + size
    if end > len(data):
        raise ValueError(f"{size} bytes at byte {at} go beyond the {len(data)} there are")
    return data[at:end]


def _read_text(data: memoryview, at: int, length: int) -> tuple[str, int]:
    return str(slice_exactly(data, at, length), "utf-8"), at + length
