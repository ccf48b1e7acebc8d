"""Committed transactions are returned, and records after damaged bytes are read."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.model import TopicPartition
from sparkmirror.store.committed_records import CommittedRecordReader
from sparkmirror.wire.batch.checksum import assemble_batch
from sparkmirror.wire.batch.header import CONTROL, HEADER_BYTES, TRANSACTIONAL, read_header
from sparkmirror.wire.batch.records import Record, build_batch

PARTITION = TopicPartition("connect-configs", 0)
COMMIT, ABORT = struct.pack(">hh", 0, 1), struct.pack(">hh", 0, 0)


def plain_batch(offset: int, *record_keys: bytes) -> bytes:
    return build_batch([Record(offset + n, 0, key, b"v") for n, key in enumerate(record_keys)])


def with_producer(batch: bytes, producer: int, attributes: int) -> bytes:
    header = read_header(batch)._replace(
        producer_id=producer, producer_epoch=0, base_sequence=0, attributes=attributes
    )
    return assemble_batch(header, batch[HEADER_BYTES:])


def transactional_batch(offset: int, producer: int, *record_keys: bytes) -> bytes:
    return with_producer(plain_batch(offset, *record_keys), producer, TRANSACTIONAL)


def marker(offset: int, producer: int, kind: bytes) -> bytes:
    batch = build_batch([Record(offset, 0, kind, b"\0" * 6)])
    return with_producer(batch, producer, TRANSACTIONAL | CONTROL)


def keys(records: Sequence[Record]) -> list[bytes | None]:
    return [record.key for record in records]


def test_records_of_a_transaction_are_returned_with_its_commit_and_never_after_an_abort() -> None:
    reader = CommittedRecordReader(PARTITION, 0)
    log = [
        transactional_batch(0, 7, b"a", b"b"),
        transactional_batch(2, 8, b"c"),
        plain_batch(3, b"d"),
        marker(4, 8, ABORT),
    ]
    assert keys(reader.accept(b"".join(log))) == [b"d"]
    assert reader.position == 5
    assert keys(reader.accept(marker(5, 7, COMMIT))) == [b"a", b"b"]


def test_record_overtaken_while_its_transaction_was_open_is_never_returned() -> None:
    reader = CommittedRecordReader(PARTITION, 0)
    log = [
        transactional_batch(0, 7, b"k", b"own"),
        transactional_batch(2, 8, b"k"),
        marker(3, 8, COMMIT),
        plain_batch(4, b"own too"),
        marker(5, 7, COMMIT),
    ]
    committed = reader.accept(b"".join(log))
    assert [(r.offset, r.key) for r in committed] == [(2, b"k"), (4, b"own too"), (1, b"own")]
    assert keys(reader.accept(transactional_batch(6, 7, b"k") + marker(7, 7, COMMIT))) == [b"k"]


def test_batch_before_the_position_is_not_returned_twice() -> None:
    reader = CommittedRecordReader(PARTITION, 0)
    batch = plain_batch(0, b"a", b"b")
    reader.accept(batch)
    assert keys(reader.accept(batch + plain_batch(2, b"c"))) == [b"c"]


def test_damaged_batch_is_skipped_with_its_offsets_named(caplog: pytest.LogCaptureFixture) -> None:
    damaged = bytearray(plain_batch(1, b"lost", b"lost too"))
    damaged[-3] ^= 0xFF
    reader = CommittedRecordReader(PARTITION, 0)
    log = plain_batch(0, b"a") + bytes(damaged) + plain_batch(3, b"b")
    assert keys(reader.accept(log)) == [b"a", b"b"]
    assert reader.position == 4
    assert "Skipped offsets 1 to 2 of connect-configs-0, which cannot be read" in caplog.text


def test_bytes_that_are_not_a_batch_are_skipped_one_offset_at_a_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    garbage = bytes(struct.pack(">qi", 1, 100)) + b"\x09" * 100
    reader = CommittedRecordReader(PARTITION, 0)
    assert keys(reader.accept(plain_batch(0, b"a") + garbage)) == [b"a"]
    assert reader.position == 1
    assert reader.accept(garbage) == []
    assert reader.position == 2
    assert "Skipped offsets 1 to 1" in caplog.text
    assert keys(reader.accept(plain_batch(2, b"b"))) == [b"b"]


@settings(max_examples=60)
@given(st.binary(max_size=300), st.integers(0, 5))
def test_the_position_never_moves_back(garbage: bytes, position: int) -> None:
    reader = CommittedRecordReader(PARTITION, position)
    reader.accept(garbage)
    assert reader.position >= position
