"""The forward lane: a new header for a batch whose records stay compressed.

What changes, and why:

    base offset     0, the only value a broker accepts from a producer
    leader epoch    -1; the target writes its own
    attributes      only the codec stays. The source's transaction is over; the target sets its own
                    timestamp type; the source's delete horizon would make the target drop
                    tombstones too early; unknown bits would be stored
    producer        the task's: the source's id would collide with producers of the target
    checksum        updated, so that the source's checksum still protects the records

The last offset delta never changes: a broker accepts a header with other offsets than the records
have, and its log is corrupt. A batch with gaps must be reopened.
"""

from __future__ import annotations

import struct
from builtins import memoryview
from dataclasses import dataclass
from typing import Final

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.checksum import patched_crc
from sparkmirror.wire.batch.header import (
    ATTRIBUTES_OFFSET,
    COMPRESSION_CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    MAGIC,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchHeader,
)

_BEFORE_CRC_RANGE: Final = struct.Struct(">qiibI")
_CRC_RANGE: Final = struct.Struct(">hiqqqhii")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProducer:
    """The producer of outgoing batches. Without an id: plain batches, no de-duplication."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    transactional: bool = False

    def __post_init__(self) -> None:
        if (self.producer_id < 0) != (self.epoch < 0):
            raise ValueError("a producer id needs an epoch, and an epoch a producer id")
        if self.transactional and self.producer_id < 0:
            raise ValueError("a transaction needs a producer id")


def forward_batch(
    header: BatchHeader, batch: memoryview, producer: BatchProducer, sequence: int
) -> tuple[bytes, memoryview]:
    """Make the batch ready for Produce: a new header, and the records where they lie.

    The two parts are sent one after the other, without being joined. The records stay a view into
    the buffer they were fetched into, which must not be reused before the batch is acknowledged.
    """
    if header.record_count != header.last_offset_delta + 1 or header.attributes & CONTROL:
        raise BatchError(
            f"the batch at offset {header.base_offset} has gaps or is a marker, and was about to be"
            " forwarded unopened; this is a fault of the program, please report it"
        )
    records = batch[HEADER_BYTES:]
    checked = _CRC_RANGE.pack(
        header.attributes & COMPRESSION_CODEC_MASK
        | (TRANSACTIONAL if producer.transactional else 0),
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        producer.producer_id,
        producer.epoch,
        NO_SEQUENCE if producer.producer_id < 0 else sequence,
        header.record_count,
    )
    crc = patched_crc(header.crc, batch[ATTRIBUTES_OFFSET:HEADER_BYTES], checked, len(records))
    return _BEFORE_CRC_RANGE.pack(0, header.length, NO_EPOCH, MAGIC, crc) + checked, records
