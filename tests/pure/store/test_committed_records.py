"""What counts in a partition: committed transactions, and whatever lies behind damaged bytes."""

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


def plain(offset: int, *keys: bytes) -> bytes:
    return build_batch([Record(offset + n, 0, key, b"v") for n, key in enumerate(keys)])


def of_producer(batch: bytes, producer: int, attributes: int) -> bytes:
    header = read_header(batch)._replace(
        producer_id=producer, producer_epoch=0, base_sequence=0, attributes=attributes
    )
    return assemble_batch(header, batch[HEADER_BYTES:])


def transactional(offset: int, producer: int, *keys: bytes) -> bytes:
    return of_producer(plain(offset, *keys), producer, TRANSACTIONAL)


def ended(offset: int, producer: int, kind: bytes) -> bytes:
    marker = build_batch([Record(offset, 0, kind, b"\0" * 6)])
    return of_producer(marker, producer, TRANSACTIONAL | CONTROL)


def keys_of(records: Sequence[Record]) -> list[bytes | None]:
    return [record.key for record in records]


def test_transaction_counts_with_its_commit_and_not_with_its_abort() -> None:
    view = CommittedRecordReader(PARTITION, 0)
    log = [
        transactional(0, 7, b"a", b"b"),
        transactional(2, 8, b"c"),
        plain(3, b"d"),
        ended(4, 8, ABORT),
    ]
    assert keys_of(view.accept(b"".join(log))) == [b"d"]
    assert view.position == 5
    assert keys_of(view.accept(ended(5, 7, COMMIT))) == [b"a", b"b"]


def test_record_overtaken_while_its_transaction_was_open_never_counts() -> None:
    view = CommittedRecordReader(PARTITION, 0)
    log = [
        transactional(0, 7, b"k", b"own"),
        transactional(2, 8, b"k"),
        ended(3, 8, COMMIT),
        plain(4, b"own too"),
        ended(5, 7, COMMIT),
    ]
    counting = view.accept(b"".join(log))
    assert [(r.offset, r.key) for r in counting] == [(2, b"k"), (4, b"own too"), (1, b"own")]
    assert keys_of(view.accept(transactional(6, 7, b"k") + ended(7, 7, COMMIT))) == [b"k"]


def test_batch_before_the_position_is_not_taken_twice() -> None:
    view = CommittedRecordReader(PARTITION, 0)
    batch = plain(0, b"a", b"b")
    view.accept(batch)
    assert keys_of(view.accept(batch + plain(2, b"c"))) == [b"c"]


def test_damaged_batch_is_skipped_with_its_offsets_named(caplog: pytest.LogCaptureFixture) -> None:
    damaged = bytearray(plain(1, b"lost", b"lost too"))
    damaged[-3] ^= 0xFF
    view = CommittedRecordReader(PARTITION, 0)
    log = plain(0, b"a") + bytes(damaged) + plain(3, b"b")
    assert keys_of(view.accept(log)) == [b"a", b"b"]
    assert view.position == 4
    assert "Skipped offsets 1 to 2 of connect-configs-0, which cannot be read" in caplog.text


def test_bytes_that_are_no_batch_are_passed_one_offset_at_a_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rubbish = bytes(struct.pack(">qi", 1, 100)) + b"\x09" * 100
    view = CommittedRecordReader(PARTITION, 0)
    assert keys_of(view.accept(plain(0, b"a") + rubbish)) == [b"a"]
    assert view.position == 1
    assert view.accept(rubbish) == []
    assert view.position == 2
    assert "Skipped offsets 1 to 1" in caplog.text
    assert keys_of(view.accept(plain(2, b"b"))) == [b"b"]


@settings(max_examples=60)
@given(st.binary(max_size=300), st.integers(0, 5))
def test_whatever_the_bytes_it_goes_on_and_never_back(rubbish: bytes, position: int) -> None:
    view = CommittedRecordReader(PARTITION, position)
    view.accept(rubbish)
    assert view.position >= position
