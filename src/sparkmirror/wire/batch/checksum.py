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
from sparkmirror.wire.batch.header import (
    ATTRIBUTES_OFFSET,
    HEADER_BYTES,
    HEADER_STRUCT,
    LOG_OVERHEAD,
    BatchHeader,
    BytesLike,
)

_INT32, _UINT32 = struct.Struct(">i"), struct.Struct(">I")

# The library takes any buffer and says `bytes`.
crc32c = cast("Callable[[BytesLike, int], int]", _library_crc32c)


def verify_crc(header: BatchHeader, batch: BytesLike) -> None:
    """Raise BatchError unless the batch is the one that its producer sealed."""
    found = crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:], 0)
    if found != header.crc:
        raise BatchError(
            f"the batch at offset {header.base_offset} has checksum {found:#010x} but its header"
            f" says {header.crc:#010x}: its bytes are damaged; stop copying the partition and"
            " restore it from a good replica"
        )


def patched_crc(crc: int, old: BytesLike, new: BytesLike, body_bytes: int) -> int:
    """Carry a checksum over a change of the header bytes 21 to 60."""
    return crc ^ combine_crc32c(crc32c(old, 0) ^ crc32c(new, 0), 0, body_bytes)


def assemble_batch(header: BatchHeader, body: BytesLike) -> bytes:
    """Join a header to its body, with the length and the checksum that belong to them."""
    length = HEADER_BYTES - LOG_OVERHEAD + len(body)
    front = HEADER_STRUCT.pack(*header._replace(length=length, crc=0))
    crc = crc32c(body, crc32c(front[ATTRIBUTES_OFFSET:], 0))
    return b"".join((HEADER_STRUCT.pack(*header._replace(length=length, crc=crc)), body))


def assemble_batch_from_parts(header: BatchHeader, parts: Iterable[BytesLike]) -> bytearray:
    """Seal a body that lies in many parts: they are copied only once."""
    batch = bytearray().join((HEADER_STRUCT.pack(*header), *parts))
    _INT32.pack_into(batch, LOG_OVERHEAD - _INT32.size, len(batch) - LOG_OVERHEAD)
    _UINT32.pack_into(
        batch, ATTRIBUTES_OFFSET - _UINT32.size, crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:], 0)
    )
    return batch
