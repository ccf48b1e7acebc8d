"""Random logs of a source partition, batch by batch, for tests without brokers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.buffer_pool import BufferPool, ResponseFrame
from tests.support.kafka.record_batches import (
    CONTROL_BIT,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    build_stored_batch,
)

_WRITER = 4711
"""The producer id in the batches of `build_stored_batch`."""
_ABORT = b"\0\0\0\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """A batch as a source broker stores it, and the records that a consumer sees of it."""

    data: bytes
    next_offset: int
    records: list[Record] = field(default_factory=list)
    aborted: tuple[AbortedTransaction, ...] = ()


def response_with(*batches: bytes | bytearray) -> ResponseFrame:
    """Return a fetch response with these batches."""
    data = b"".join(map(bytes, batches))
    frame = BufferPool().allocate(len(data))
    frame.view[:] = data
    return frame


def random_log(rng: random.Random, first: int, values: Sequence[bytes | None]) -> list[StoredBatch]:
    """Return batches from an offset on: gaps, codecs, append times, markers, aborted ones.

    Some records have the headers `drop` and `pii` of `transform_chains.DROP_MARKED`.
    """
    batches: list[StoredBatch] = []
    offset = first
    for _ in range(rng.randint(1, 6)):
        kind = rng.choice(["plain", "plain", "plain", "appended", "marker", "aborted"])
        if kind == "marker":
            batches.append(_marker(offset))
            offset += 1
            continue
        made = _data_batch(rng, offset, values, kind)
        batches.append(made)
        offset = made.next_offset
        if kind == "aborted":
            batches.append(_marker(offset))
            offset += 1
        offset += rng.choice([0, 0, 3])
    return batches


def _marker(offset: int) -> StoredBatch:
    record = Record(offset, 1, _ABORT, b"\0\0\0\0\0\0")
    batch = build_stored_batch([record], bits=CONTROL_BIT | TRANSACTIONAL)
    return StoredBatch(data=bytes(batch), next_offset=offset + 1)


def _data_batch(
    rng: random.Random, first: int, values: Sequence[bytes | None], kind: str
) -> StoredBatch:
    records: list[Record] = []
    offset, is_dropped = first, rng.choice([0.0, 0.3, 1.0])
    for _ in range(rng.choice([1, 3, 40])):
        headers = [(b"h", rng.choice([None, b"", b"x"])) for _ in range(rng.choice([0, 0, 1]))]
        if rng.random() < is_dropped:
            headers.append((b"drop", rng.choice([None, b"1"])))
        if rng.random() < 0.2:
            headers += [(b"pii", b"secret")] * 2
        time_ms = 1_700_000_000_000 + rng.choice([0, 0, 5, -5, 9_000_000])
        key = rng.choice([None, b"", b"k"])
        records.append(Record(offset, time_ms, key, rng.choice(values), tuple(headers)))
        offset += rng.choice([1, 1, 1, 4])
    tail = rng.choice([0, 0, 2])
    bits = {"appended": LOG_APPEND_TIME, "aborted": TRANSACTIONAL}.get(kind, 0)
    batch = build_stored_batch(records, rng.choice(list(CompressionType)), bits=bits, tail=tail)
    made = StoredBatch(data=bytes(batch), next_offset=records[-1].offset + tail + 1)
    if kind == "aborted":
        return replace(made, aborted=(AbortedTransaction(first, _WRITER),))
    if kind == "appended":
        newest = max(record.timestamp for record in records)
        records = [record._replace(timestamp=newest) for record in records]
    return replace(made, records=records)
