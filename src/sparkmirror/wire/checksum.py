"""The checksum of a batch: verify it, carry it over a header change, or seal new data with it.

CRC-32C is linear: for two inputs of equal length, crc(a) XOR crc(b) depends on a XOR b alone, and
the effect of bytes further left is a shift by the length of what follows. So a changed header needs
40 hashed bytes, whatever the batch weighs:

    crc' = crc XOR shift(crc(old header bytes) XOR crc(new header bytes), bytes of the body)

It is not only cheap. The source's checksum keeps guarding the body: a bit that flips in this
process's memory after the verification is found by the target broker. Recomputing over the body
would bless it. `seal` is therefore only for data that was made anew from a verified batch.

The one importer of the checksum library.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import cast

from awscrt.checksums import combine_crc32c
from awscrt.checksums import crc32c as _library_crc32c

from sparkmirror.errors import BatchError
from sparkmirror.wire.header import (
    BEFORE_LENGTH,
    CHECKED_FROM,
    HEADER_BYTES,
    LAYOUT,
    Data,
    Header,
)

_INT32, _UINT32 = struct.Struct(">i"), struct.Struct(">I")

# The library takes any buffer and says `bytes`.
crc32c = cast("Callable[[Data, int], int]", _library_crc32c)


def verify(header: Header, batch: Data) -> None:
    """Raise BatchError unless the batch is the one that its producer sealed."""
    found = crc32c(memoryview(batch)[CHECKED_FROM:], 0)
    if found != header.crc:
        raise BatchError(
            f"the batch at offset {header.base_offset} has checksum {found:#010x} but its header"
            f" says {header.crc:#010x}: its bytes are damaged; stop copying the partition and"
            " restore it from a good replica"
        )


def patched_crc(crc: int, old: Data, new: Data, body_bytes: int) -> int:
    """Carry a checksum over a change of the header bytes 21 to 60."""
    return crc ^ combine_crc32c(crc32c(old, 0) ^ crc32c(new, 0), 0, body_bytes)


def seal(header: Header, body: Data) -> bytes:
    """Join a header to its body, with the length and the checksum that belong to them."""
    length = HEADER_BYTES - BEFORE_LENGTH + len(body)
    front = LAYOUT.pack(*header._replace(length=length, crc=0))
    crc = crc32c(body, crc32c(front[CHECKED_FROM:], 0))
    return b"".join((LAYOUT.pack(*header._replace(length=length, crc=crc)), body))


def seal_parts(header: Header, parts: Iterable[Data]) -> bytearray:
    """Seal a body that lies in many parts: they are copied only once."""
    batch = bytearray().join((LAYOUT.pack(*header), *parts))
    _INT32.pack_into(batch, BEFORE_LENGTH - _INT32.size, len(batch) - BEFORE_LENGTH)
    _UINT32.pack_into(
        batch, CHECKED_FROM - _UINT32.size, crc32c(memoryview(batch)[CHECKED_FROM:], 0)
    )
    return batch
