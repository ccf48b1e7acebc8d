"""The bounds of record batches in a fetched buffer, and their header of 61 bytes.

    offset  bytes  field                    covered by the checksum
         0      8  base offset                no   given by the broker that stores the batch
         8      4  length of what follows     no
        12      4  leader epoch               no   given by the broker
        16      1  magic                      no   2; older messages have their magic here too
        17      4  CRC-32C                    no
        21      2  attributes                 yes  codec and five flags, below
        23      4  last offset delta          yes
        27      8  base timestamp             yes  what the records' timestamp deltas count from
        35      8  max timestamp              yes
        43      8  producer id                yes  -1: none
        51      2  producer epoch             yes
        53      4  base sequence              yes
        57      4  number of records          yes
        61         records, compressed as one

Knows the layout, not lanes, codecs or records. A length or a magic that is impossible raises
BatchError.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from sparkmirror.errors import BatchError

BytesLike: TypeAlias = bytes | bytearray | memoryview

HEADER_STRUCT: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER_STRUCT.size
LOG_OVERHEAD: Final = 12
"""The length field counts the bytes after itself: a batch is `length + 12` bytes."""
ATTRIBUTES_OFFSET: Final = 21
"""The first byte that the checksum covers."""

COMPRESSION_CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

MAGIC: Final = 2
NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
NO_EPOCH: Final = -1

_LENGTH_AND_MAGIC: Final = struct.Struct(">8xi4xb")
_MIN_LENGTHS: Final = (14, 22, HEADER_BYTES - LOG_OVERHEAD)


class BatchSpan(NamedTuple):
    """One complete batch, or one message of magic 0 or 1, in a buffer: `buffer[start:end]`."""

    start: int
    end: int
    magic: int


class BatchHeader(NamedTuple):
    """The header of a batch, field by field, in the order of the bytes."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """The bytes of the whole batch, which the target compares with max.message.bytes."""
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """The offset of the last record, also if compaction has removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The first offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec_id(self) -> int:
        """The number of the compression type, which may be unknown to this version."""
        return self.attributes & COMPRESSION_CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether all records have the max timestamp instead of their own."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a marker written by the broker."""
        return bool(self.attributes & CONTROL)


def read_header(buffer: BytesLike, start: int = 0) -> BatchHeader:
    """Read the header of the magic 2 batch at `start`."""
    return BatchHeader._make(HEADER_STRUCT.unpack_from(buffer, start))


def iter_batches(buffer: BytesLike) -> Iterator[BatchSpan]:
    """Yield the complete batches of a fetched buffer. Raises BatchError.

    Leaves out a batch that the end of the response cuts off: the next fetch has it whole. If a
    buffer has bytes but no complete batch, the reader must fetch with larger limits.
    """
    start, size = 0, len(buffer)
    while size - start >= _LENGTH_AND_MAGIC.size:
        length, magic = _LENGTH_AND_MAGIC.unpack_from(buffer, start)
        if not 0 <= magic <= MAGIC:
            raise BatchError(
                f"a record batch of magic {magic}, {start} bytes into the response, is newer than"
                " this program or corrupt; stop copying the partition and check its segments"
            )
        if length < _MIN_LENGTHS[magic]:
            raise BatchError(
                f"a record batch of magic {magic}, {start} bytes into the response, claims a length"
                f" of {length} bytes, which is impossible; check the segments of the partition"
            )
        end = start + LOG_OVERHEAD + length
        if end > size:
            return
        yield BatchSpan(start, end, magic)
        start = end
