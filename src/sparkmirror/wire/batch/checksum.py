"""The checksum of a batch: verified, updated for a changed header, or computed for new data.

CRC-32C is linear: for two inputs of equal length, crc(a) XOR crc(b) depends on a XOR b alone, and
the effect of bytes further left is a shift by the length of what follows. So a changed header needs
40 hashed bytes, for a batch of any size:

    crc' = crc XOR shift(crc(old header bytes) XOR crc(new header bytes), bytes of the body)

This is cheap, and the source's checksum still protects the body: the target broker detects a bit
that flips in the memory of this process after the verification. A checksum computed over the body
would hide it. So `assemble_batch` is only for data that was built from a verified batch.

Only this module imports the checksum library.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final, cast

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

_INT32: Final = struct.Struct(">i")
_UINT32: Final = struct.Struct(">I")

# The library accepts any buffer but declares `bytes`.
crc32c: Final = cast("Callable[[BytesLike, int], int]", _library_crc32c)


def verify_crc(header: BatchHeader, batch: BytesLike) -> None:
    """Raise BatchError if the checksum does not match."""
    found = crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:], 0)
    if found != header.crc:
        raise BatchError(
            f"the batch at offset {header.base_offset} has checksum {found:#010x} but its header"
            f" says {header.crc:#010x}: its bytes are damaged; stop copying the partition and"
            " restore it from a good replica"
        )


def patched_crc(crc: int, old: BytesLike, new: BytesLike, body_bytes: int) -> int:
    """Return the checksum after a change of the header bytes 21 to 60."""
    return crc ^ combine_crc32c(crc32c(old, 0) ^ crc32c(new, 0), 0, body_bytes)


def assemble_batch(header: BatchHeader, body: BytesLike) -> bytes:
    """Join a header and a body, with their length and checksum."""
    length = HEADER_BYTES - LOG_OVERHEAD + len(body)
    front = HEADER_STRUCT.pack(*header._replace(length=length, crc=0))
    crc = crc32c(body, crc32c(front[ATTRIBUTES_OFFSET:], 0))
    return b"".join((HEADER_STRUCT.pack(*header._replace(length=length, crc=crc)), body))


def assemble_batch_from_parts(header: BatchHeader, parts: Iterable[BytesLike]) -> bytearray:
    """Join a header and a body in many parts, which are copied only once."""
    batch = bytearray().join((HEADER_STRUCT.pack(*header), *parts))
    _INT32.pack_into(batch, LOG_OVERHEAD - _INT32.size, len(batch) - LOG_OVERHEAD)
    _UINT32.pack_into(
        batch, ATTRIBUTES_OFFSET - _UINT32.size, crc32c(memoryview(batch)[ATTRIBUTES_OFFSET:], 0)
    )
    return batch
