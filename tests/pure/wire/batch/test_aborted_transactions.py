"""The filter of aborted transactions for read_committed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import BatchError
from sparkmirror.wire.batch.aborted_transactions import (
    AbortedTransaction,
    AbortedTransactionFilter,
    ControlRecordType,
    read_control_type,
)
from sparkmirror.wire.batch.header import BatchHeader, read_header
from sparkmirror.wire.batch.records import Record
from tests.support.kafka.record_batches import (
    CONTROL_BIT,
    JAVA_BATCHES,
    NOW_MS,
    TRANSACTIONAL,
    build_stored_batch,
    fix_checksum,
)


def data_batch(producer: int, offset: int, count: int = 1, bits: int = TRANSACTIONAL) -> bytearray:
    batch = build_stored_batch(
        [Record(offset + n, NOW_MS, b"k", b"v") for n in range(count)], bits=bits
    )
    batch[43:51] = producer.to_bytes(8, "big", signed=True)
    return fix_checksum(batch)


def control_batch(producer: int, offset: int, kind: int) -> bytearray:
    key = b"\0\0" + kind.to_bytes(2, "big")
    batch = build_stored_batch(
        [Record(offset, NOW_MS, key, bytes(6))], bits=TRANSACTIONAL | CONTROL_BIT
    )
    batch[43:51] = producer.to_bytes(8, "big", signed=True)
    return fix_checksum(batch)


def aborted_offsets(log: list[bytearray], listed: list[AbortedTransaction]) -> list[int]:
    committed = AbortedTransactionFilter(listed)
    return [
        read_header(batch).base_offset
        for batch in log
        if committed.is_aborted(read_header(batch), batch)
    ]


def test_control_records_written_by_java_are_read() -> None:
    """The type is in the key of the control record."""
    kinds = {
        name: read_control_type(JAVA_BATCHES[name].header, JAVA_BATCHES[name].buffer)
        for name in JAVA_BATCHES
        if "marker" in name
    }
    assert kinds == {
        "abort marker": ControlRecordType.ABORT,
        "commit marker": ControlRecordType.COMMIT,
        "emptied marker": None,
    }


def test_other_control_records_end_no_transaction() -> None:
    batch = control_batch(1, 0, kind=2)
    assert read_control_type(read_header(batch), batch) is None


@pytest.mark.parametrize("key", [None, b"\0\0"], ids=["null", "short"])
def test_a_control_record_without_a_type_is_refused(key: bytes | None) -> None:
    batch = build_stored_batch([Record(0, NOW_MS, key, b"")], bits=CONTROL_BIT)
    with pytest.raises(BatchError, match="control batch without a type"):
        read_control_type(read_header(batch), batch)


def test_an_aborted_transaction_ends_at_its_marker() -> None:
    log = [
        data_batch(1, 0, 3),
        data_batch(1, 3, 3),
        data_batch(2, 6),
        data_batch(1, 7),
        control_batch(1, 8, ControlRecordType.ABORT),
        data_batch(1, 9),
    ]
    assert aborted_offsets(log, [AbortedTransaction(3, 1)]) == [3, 7]


def test_a_producer_may_abort_twice_and_commit_between() -> None:
    log = [
        data_batch(1, 0),
        control_batch(1, 1, ControlRecordType.ABORT),
        data_batch(1, 2),
        control_batch(1, 3, ControlRecordType.COMMIT),
        data_batch(1, 4),
        control_batch(1, 5, ControlRecordType.ABORT),
    ]
    assert aborted_offsets(log, [AbortedTransaction(4, 1), AbortedTransaction(0, 1)]) == [0, 4]


def test_non_transactional_batches_of_an_aborting_producer_are_kept() -> None:
    log = [
        data_batch(1, 0),
        data_batch(1, 1, bits=0),
        data_batch(-1, 2, bits=0),
        control_batch(1, 3, ControlRecordType.ABORT),
    ]
    assert aborted_offsets(log, [AbortedTransaction(0, 1)]) == [0]


def test_a_batch_before_the_fetch_offset_begins_its_transaction() -> None:
    """The first batch of a response may start below the fetch offset."""
    log = [data_batch(1, 0, 5), data_batch(1, 5)]
    assert aborted_offsets(log, [AbortedTransaction(2, 1)]) == [0, 5]


def test_without_aborted_transactions_no_batch_is_aborted() -> None:
    log = [
        data_batch(1, 0),
        data_batch(2, 1),
        control_batch(1, 2, ControlRecordType.ABORT),
        control_batch(2, 3, ControlRecordType.COMMIT),
    ]
    assert aborted_offsets(log, []) == []


class RandomLog:
    """A log with interleaved transactions. `aborted` has the offsets of its aborted batches."""

    def __init__(self, rng: random.Random) -> None:
        self.batches: list[bytearray] = []
        self.listed: list[tuple[AbortedTransaction, int]] = []
        self.aborted: set[int] = set()
        self._offset = 0
        self._open: dict[int, list[int]] = {}
        for _ in range(rng.randint(5, 40)):
            self._step(rng)
        for producer in list(self._open):
            self._end(producer, ControlRecordType.ABORT)

    def _step(self, rng: random.Random) -> None:
        producer = rng.randint(1, 3)
        if producer in self._open and rng.random() < 0.3:
            self._end(producer, rng.choice(list(ControlRecordType)))
            return
        self._open.setdefault(producer, []).append(self._offset)
        count = rng.randint(1, 3)
        self.batches.append(data_batch(producer, self._offset, count))
        self._offset += count

    def _end(self, producer: int, kind: ControlRecordType) -> None:
        written = self._open.pop(producer)
        if kind is ControlRecordType.ABORT:
            self.aborted |= set(written)
            self.listed.append((AbortedTransaction(written[0], producer), self._offset))
        self.batches.append(control_batch(producer, self._offset, kind))
        self._offset += 1

    def responses(self, rng: random.Random) -> Iterator[tuple[list[bytearray], list[BatchHeader]]]:
        """Divide the log into responses at random batches."""
        at = 0
        while at < len(self.batches):
            size = rng.randint(1, 6)
            part = self.batches[at : at + size]
            yield part, [read_header(batch) for batch in part]
            at += size


@settings(max_examples=25)
@given(st.integers(0, 1 << 30))
def test_the_filter_finds_every_aborted_batch_of_each_response(seed: int) -> None:
    """A filter serves one response; each response lists its aborted transactions."""
    rng = random.Random(seed)
    log = RandomLog(rng)
    aborted: set[int] = set()
    for part, headers in log.responses(rng):
        first, last = headers[0].base_offset, headers[-1].last_offset
        listed = [one for one, end in log.listed if one.first_offset <= last and end >= first]
        rng.shuffle(listed)
        aborted |= set(aborted_offsets(part, listed))
    assert aborted == log.aborted
