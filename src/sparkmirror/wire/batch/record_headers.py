"""The headers of records, read and written without key and value.

    record   ... | key length, key | value length, value | header section
                                                           count | name | value | name | value ...

A header section is the bytes from the number of headers to the end of the record. Two records with
equal sections have the same headers.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.wire.batch import varint
from sparkmirror.wire.batch.records import RecordHeader

NO_HEADERS = b"\0"
"""The section of a record without headers."""


def find_header_section(body: bytes, rest: int, end: int) -> int:
    """Return where the header section begins; `rest` is where the key begins.

    Raises ValueError if key and value do not fit into the record. Lengths of one and two bytes are
    read inline: a call for each would double the time.
    """
    at = rest
    for _ in range(2):
        length = body[at]
        if length > 0x7F:
            length += (body[at + 1] << 7) - 0x80
            if length > 0x3FFF:
                length, at = varint.decode(body, at)
                at += max(length, 0)
                continue
            at += 1
        at += 1 if length & 1 else 1 + (length >> 1)
    if at >= end:
        raise ValueError("a record whose parts do not fill it")
    return at


def read_header_section(section: bytes) -> tuple[RecordHeader, ...]:
    """Read the headers of a section. Raises ValueError."""
    headers: list[RecordHeader] = []
    for name, encoded in split_header_section(section):
        _, at = varint.decode(encoded, 0)
        length, at = varint.decode(encoded, at + len(name))
        headers.append((name, None if length < 0 else encoded[at:]))
    return tuple(headers)


def split_header_section(section: bytes) -> list[tuple[bytes, bytes]]:
    """Return the headers of a section: the name, and the whole header as it is encoded.

    Raises ValueError. Lengths of one byte are read inline, for speed.
    """
    size = len(section)
    count, at = _read_length(section, 0, size)
    headers: list[tuple[bytes, bytes]] = []
    for _ in range(count):
        start = at
        length, at = _read_length(section, at, size)
        name = section[at : at + length]
        at += length
        content_length, at = _read_length(section, at, size)
        if length < 0:
            raise ValueError("a record header without a name")
        if content_length > 0:
            at += content_length
        headers.append((name, section[start:at]))
    if count < 0 or at != size:
        raise ValueError("a record whose parts do not fill it")
    return headers


def _read_length(section: bytes, at: int, size: int) -> tuple[int, int]:
    if at < size and section[at] < 0x80:
        raw = section[at]
        return (raw >> 1) ^ -(raw & 1), at + 1
    return varint.decode(section, at)


def join_header_section(headers: Sequence[bytes]) -> bytes:
    """Return the section of headers that are encoded already."""
    return varint.encode_non_negative(len(headers)) + b"".join(headers)


def encode_name(name: bytes) -> bytes:
    """Encode the name of a header, as a section has it: behind its length."""
    return varint.encode_non_negative(len(name)) + name


def encode_header_section(headers: Sequence[RecordHeader]) -> bytes:
    """Encode headers as a section."""
    parts = [varint.encode_non_negative(len(headers))]
    for name, content in headers:
        parts.append(encode_name(name))
        if content is None:
            parts.append(_NULL)
        else:
            parts += (varint.encode_non_negative(len(content)), content)
    return b"".join(parts)


_NULL = varint.encode(-1)
