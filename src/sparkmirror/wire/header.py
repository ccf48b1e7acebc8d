"""Where record batches begin and end in a fetched buffer, and the 61 bytes at their front.

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

Knows the layout and nothing about lanes, codecs or what a record holds. What it cannot understand
it refuses: a length or a magic that makes no sense is a BatchError, never a guess.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from sparkmirror.errors import BatchError

Data: TypeAlias = bytes | bytearray | memoryview

LAYOUT = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = LAYOUT.size
BEFORE_LENGTH = 12
"""The length field counts the bytes after itself: a batch is `length + 12` bytes."""
CHECKED_FROM = 21
"""The first byte that the checksum covers."""

CODEC_BITS = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

MAGIC = 2
NO_PRODUCER = -1
NO_SEQUENCE = -1
NO_EPOCH = -1

_FRONT = struct.Struct(">8xi4xb")
_SMALLEST_LENGTH = (14, 22, HEADER_BYTES - BEFORE_LENGTH)


class Span(NamedTuple):
    """One complete batch, or one message of magic 0 or 1, in a buffer: `buffer[start:end]`."""

    start: int
    end: int
    magic: int


class Header(NamedTuple):
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
        """Bytes of the whole batch: what the target compares with max.message.bytes."""
        return self.length + BEFORE_LENGTH

    @property
    def last_offset(self) -> int:
        """Offset of the last record, also when compaction has removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Where to read on after this batch, whatever became of it."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec_id(self) -> int:
        """How the records are compressed: the number of a Codec, or of one from the future."""
        return self.attributes & CODEC_BITS

    @property
    def is_log_append_time(self) -> bool:
        """Whether all records carry the max timestamp instead of their own."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a marker written by the broker."""
        return bool(self.attributes & CONTROL)


def read_header(buffer: Data, start: int = 0) -> Header:
    """Read the header of the magic 2 batch that begins at `start`."""
    return Header._make(LAYOUT.unpack_from(buffer, start))


def batches(buffer: Data) -> Iterator[Span]:
    """Walk over the complete batches of a fetched buffer.

    A batch cut off by the end of the response is left out: the next fetch brings it whole. A buffer
    that holds bytes but not one complete batch yields nothing, and its reader must not ask again
    with the same limits.
    """
    start, size = 0, len(buffer)
    while size - start >= _FRONT.size:
        length, magic = _FRONT.unpack_from(buffer, start)
        if not 0 <= magic <= MAGIC:
            raise BatchError(
                f"a record batch of magic {magic}, {start} bytes into the response, is newer than"
                " this program or corrupt; stop copying the partition and check its segments"
            )
        if length < _SMALLEST_LENGTH[magic]:
            raise BatchError(
                f"a record batch of magic {magic}, {start} bytes into the response, claims a length"
                f" of {length} bytes, which is impossible; check the segments of the partition"
            )
        end = start + BEFORE_LENGTH + length
        if end > size:
            return
        yield Span(start, end, magic)
        start = end
