"""Log parts: what a read_committed consumer sees of fetched batches, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.copy.driver.resume.existing.log_part import LogPart, read_log_part, same_record
from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction
from sparkmirror.wire.batch.header import LOG_APPEND_TIME
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import SingleFetchResult
from tests.support.copy.existing_logs import record
from tests.support.kafka.record_batches import (
    CONTROL_BIT,
    TRANSACTIONAL,
    build_legacy_message,
    build_stored_batch,
)

PRODUCER = 4711
"""The producer id of `build_stored_batch`."""


def data(*offsets: int, bits: int = 0, tail: int = 0) -> bytearray:
    records = [Record(offset, 100 + offset, b"k", b"%d" % offset) for offset in offsets]
    return build_stored_batch(records, bits=bits, tail=tail)


def abort_marker(offset: int) -> bytearray:
    return build_stored_batch(
        [Record(offset, 100, bytes(4), bytes(6))], bits=TRANSACTIONAL | CONTROL_BIT
    )


def read(
    offset: int,
    *batches: bytes | bytearray,
    aborted: Sequence[AbortedTransaction] = (),
    read_committed: bool = True,
) -> LogPart:
    fetched = SingleFetchResult(
        records=b"".join(batches),
        aborted_transactions=tuple(aborted),
        high_watermark=99,
        last_stable_offset=99,
        log_start_offset=0,
    )
    return read_log_part(offset, fetched, read_committed=read_committed)


def offsets_of(part: LogPart) -> list[int]:
    return [one.offset for one in part.records]


def test_markers_and_aborted_records_are_explained_and_compacted_ones_are_holes() -> None:
    log = (data(0, 1), data(2, bits=TRANSACTIONAL), abort_marker(3), data(4, 7, tail=2), data(12))
    part = read(0, *log, aborted=[AbortedTransaction(2, PRODUCER)])
    assert offsets_of(part) == [0, 1, 4, 7, 12]
    assert [part.holes_before(index) for index in range(5)] == [0, 0, 0, 2, 4]
    assert (part.start, part.end, part.has_holes) == (0, 13, True)


def test_aborted_records_count_if_the_mirror_copies_them() -> None:
    log = (data(0, 1), data(2, bits=TRANSACTIONAL), abort_marker(3))
    aborted = [AbortedTransaction(2, PRODUCER)]
    assert offsets_of(read(0, *log, aborted=aborted, read_committed=False)) == [0, 1, 2]


def test_a_part_begins_with_the_batch_that_holds_the_offset() -> None:
    part = read(2, data(0, 1, 2, 3))
    assert (part.start, part.end, offsets_of(part)) == (0, 4, [0, 1, 2, 3])
    assert read(5) == LogPart(start=5, end=5)


def test_messages_of_the_old_format_are_records() -> None:
    old = [build_legacy_message(Record(offset, 7, b"k", b"v"), 1) for offset in (3, 4)]
    part = read(3, *old)
    assert (part.end, offsets_of(part)) == (5, [3, 4])


def test_joined_parts_have_every_record_once() -> None:
    first, second = read(0, data(0, 1, 2)), read(2, data(2), abort_marker(3), data(4))
    part = first.joined(second)
    assert (offsets_of(part), part.explained, part.end) == ([0, 1, 2, 4], (3,), 5)
    assert not part.has_holes
    assert offsets_of(part.up_to(2)) == [0, 1]


def test_a_time_that_the_target_has_set_is_not_compared() -> None:
    sent = read(0, data(5)).records[0]
    stamped = read(0, data(5, bits=LOG_APPEND_TIME)).records[0]
    assert not stamped.has_producer_time
    assert same_record(sent._replace(timestamp=1), stamped)
    assert not same_record(sent._replace(timestamp=1), sent)
    assert not same_record(record("other", sent.timestamp), sent)
