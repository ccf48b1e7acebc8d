"""Record batches for tests: built and read by kafka-python, and recorded from Java.

kafka-python is installed without its codec libraries, so `read_batch` decompresses snappy, lz4 and
zstd first. The batches that Java wrote test the codecs.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import cramjam
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

from sparkmirror.wire.batch.checksum import crc32c
from sparkmirror.wire.batch.compression import XERIAL_MAGIC, CompressionType, compress
from sparkmirror.wire.batch.header import BatchHeader, read_header
from sparkmirror.wire.batch.records import Record
from tests.support.golden import from_base64, golden_json

# The package has no types.
_read_v2 = cast("Callable[[bytes], Any]", DefaultRecordBatch)
_read_legacy = cast("Callable[[bytes, int], Any]", LegacyRecordBatch)
_build_v2 = cast("Callable[..., Any]", DefaultRecordBatchBuilder)
_build_legacy = cast("Callable[..., Any]", LegacyRecordBatchBuilder)

_LARGE = 4096

NOW_MS = 1_700_000_000_000
TIMESTAMPS_MS = (-1, 0, 1, 915_148_800_000, NOW_MS, NOW_MS + 1, NOW_MS - 5, 4_102_444_800_000)
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL_BIT, DELETE_HORIZON = 8, 16, 32, 64
WITHOUT_ZSTD = frozenset(CompressionType) - {CompressionType.ZSTD}
"""The codecs of brokers before 2.1, and of Produce requests before version 7."""


def random_record(offset: int, rng: random.Random) -> Record:
    """Return a record with random, empty or null contents, headers and timestamp."""
    headers = tuple(
        (rng.choice([b"", b"h", b"same", "größe".encode()]), rng.choice([None, b"", b"content"]))
        for _ in range(rng.choice([0, 0, 0, 1, 4]))
    )
    return Record(
        offset=offset,
        timestamp=rng.choice(TIMESTAMPS_MS),
        key=rng.choice([None, b"", b"key", rng.randbytes(rng.randrange(200))]),
        value=rng.choice([None, b"", b"word " * rng.randrange(50), rng.randbytes(9)]),
        headers=headers,
    )


def random_records(rng: random.Random, *, gaps: bool = False, most: int = 40) -> list[Record]:
    """Return the records of one batch, at most `most`."""
    offset = rng.choice([0, 7, 1 << 40])
    records = []
    for _ in range(rng.randint(1, most)):
        records.append(random_record(offset, rng))
        offset += rng.choice([1, 1, 2, 90]) if gaps else 1
    return records


def build_stored_batch(
    records: Sequence[Record],
    codec: CompressionType = CompressionType.NONE,
    *,
    bits: int = 0,
    tail: int = 0,
) -> bytearray:
    """Build a batch as a source broker stores it: kafka-python's bytes, at the records' offsets.

    `bits` are set in the attributes. `tail` offsets follow the last record, as compaction leaves
    them. A producer that is not ours is in the header.
    """
    builder = _build_v2(
        magic=2,
        compression_type=CompressionType.GZIP
        if codec == CompressionType.GZIP
        else CompressionType.NONE,
        is_transactional=False,
        producer_id=4711,
        producer_epoch=3,
        base_sequence=99,
        batch_size=1 << 30,
    )
    base = records[0].offset
    for record in records:
        names = [(name.decode(), content) for name, content in record.headers]
        builder.append(record.offset - base, record.timestamp, record.key, record.value, names)
    batch = bytearray(builder.build())
    attributes = batch[22] | bits
    if codec not in (CompressionType.NONE, CompressionType.GZIP):
        batch[61:] = compress(codec, bytes(batch[61:]))
        attributes |= codec
    struct.pack_into(">qii", batch, 0, base, len(batch) - 12, 12)
    struct.pack_into(">hi", batch, 21, attributes, records[-1].offset - base + tail)
    return fix_checksum(batch)


def fix_checksum(batch: bytearray) -> bytearray:
    """Write the checksum of a changed batch into it, and return it."""
    struct.pack_into(">I", batch, 17, crc32c(batch[21:], 0))
    return batch


def read_batch(batch: bytes | bytearray) -> list[Record]:
    """Read a batch of magic 2 as kafka-python's consumer does, checksum included.

    Its own checksum takes a second for five megabytes, so that large batches have another one.
    """
    reader = _read_v2(decompressed(batch))
    if len(batch) <= _LARGE:
        assert _read_v2(bytes(batch)).validate_crc()
    else:
        assert crc32c(batch[21:], 0) == int.from_bytes(batch[17:21], "big")
    return [
        Record(
            offset=one.offset,
            timestamp=one.timestamp,
            key=one.key,
            value=one.value,
            headers=tuple((name.encode(), content) for name, content in one.headers),
        )
        for one in reader
    ]


def decompressed(batch: bytes | bytearray) -> bytes:
    """Return the batch without compression."""
    body = bytes(batch[61:])
    match batch[22] & 7:
        case CompressionType.SNAPPY if body.startswith(XERIAL_MAGIC):
            body = _decompress_xerial(body)
        case CompressionType.SNAPPY:
            body = bytes(cramjam.snappy.decompress_raw(body))
        case CompressionType.LZ4:
            body = bytes(cramjam.lz4.decompress(body))
        case CompressionType.ZSTD:
            body = bytes(cramjam.zstd.decompress(body))
        case _:
            return bytes(batch)
    front = bytearray(batch[:61])
    front[22] &= ~7
    return bytes(front) + body


def _decompress_xerial(body: bytes) -> bytes:
    out, at = b"", 16
    while at < len(body):
        length = int.from_bytes(body[at : at + 4], "big")
        out += bytes(cramjam.snappy.decompress_raw(body[at + 4 : at + 4 + length]))
        at += 4 + length
    return out


def validate_as_broker(batch: bytes, limit: int = 1_048_588) -> list[Record]:
    """Check a batch as a broker checks a produced one; return its records."""
    header = read_header(batch)
    assert header.base_offset == 0, "INVALID_RECORD: base offset"
    assert header.magic == 2
    assert header.length == len(batch) - 12, "exactly one batch"
    assert len(batch) <= limit, "MESSAGE_TOO_LARGE"
    assert header.record_count > 0
    assert header.record_count == header.last_offset_delta + 1, "INVALID_RECORD: count"
    assert header.attributes & ~(7 | TRANSACTIONAL) == 0, "bits that must not reach the target"
    assert header.producer_id < 0 or header.base_sequence >= 0, "INVALID_RECORD: sequence"
    if header.codec_id == CompressionType.LZ4:
        assert batch[61 + 4] & 0x20, "UNKNOWN_SERVER_ERROR: blocks that lean on each other"
    records = read_batch(batch)
    assert [one.offset for one in records] == list(range(header.record_count)), (
        "overlapping offsets"
    )
    assert max(one.timestamp for one in records) == header.max_timestamp
    return records


def without_offsets(records: Sequence[Record]) -> list[tuple[object, ...]]:
    """Return everything but the offsets: what a copy must not change."""
    return [tuple(one)[1:] for one in records]


def build_legacy_message(
    record: Record, magic: int, codec: CompressionType = CompressionType.NONE
) -> bytes:
    """Build one message of magic 0 or 1 with kafka-python; a wrapper if there is a codec."""
    builder = _build_legacy(magic=magic, compression_type=codec, batch_size=1 << 20)
    builder.append(0, record.timestamp, record.key, record.value)
    message = bytearray(builder.build())
    struct.pack_into(">q", message, 0, record.offset)
    return bytes(message)


def read_legacy_message(message: bytes, magic: int) -> list[Record]:
    """Read one message of magic 0 or 1 as kafka-python's consumer does."""
    return [
        Record(
            offset=one.offset,
            timestamp=-1 if one.timestamp is None else one.timestamp,
            key=one.key,
            value=one.value,
        )
        for one in _read_legacy(message, magic)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBatches:
    """A buffer that Java wrote, and what Java reads from it."""

    name: str
    buffer: memoryview
    facts: list[dict[str, Any]]
    records: list[Any]

    @property
    def header(self) -> BatchHeader:
        """The header of the first batch."""
        return read_header(self.buffer)


JAVA_BATCHES = {
    entry["name"]: RecordedBatches(
        name=entry["name"],
        buffer=memoryview(from_base64(entry["bytes"]) or b""),
        facts=entry["batches"],
        records=entry["records"],
    )
    for entry in golden_json("wire/batches.json")
}


def as_recorded(record: Record) -> Any:
    """Return a record in the format of the recordings."""
    row = [
        record.offset,
        record.timestamp,
        _base64(record.key),
        _base64(record.value),
        [[_base64(name), _base64(content)] for name, content in record.headers],
    ]
    text = json.dumps(row, separators=(",", ":"))
    return row if len(text) <= 300 else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _base64(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()
