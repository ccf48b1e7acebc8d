"""The headers of records, read and written without key and value.

    record   ... | key length, key | value length, value | header section
                                                           count | name | value | name | value ...

A header section is the bytes from the number of headers to the end of the record. Two records with
equal sections have the same headers.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.errors import BatchError
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
    """Read the headers of a section. Raises BatchError."""
    try:
        count, at = varint.decode(section, 0)
        headers: list[RecordHeader] = []
        for _ in range(count):
            name, at = _read_bytes(section, at)
            content, at = _read_bytes(section, at)
            if name is None:
                raise ValueError("a record header without a name")
            headers.append((name, content))
        if count < 0 or at != len(section):
            raise ValueError("a record whose parts do not fill it")
    except ValueError as error:
        raise BatchError(
            f"a batch holds {error}; stop copying the partition and check the batch at the source"
        ) from error
    return tuple(headers)


def _read_bytes(section: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = varint.decode(section, at)
    if length < 0:
        return None, at
    return section[at : at + length], at + length


def encode_header_section(headers: Sequence[RecordHeader]) -> bytes:
    """Encode headers as a section."""
    parts = [varint.encode_non_negative(len(headers))]
    for name, content in headers:
        parts += (varint.encode_non_negative(len(name)), name)
        if content is None:
            parts.append(_NULL)
        else:
            parts += (varint.encode_non_negative(len(content)), content)
    return b"".join(parts)


_NULL = varint.encode(-1)
