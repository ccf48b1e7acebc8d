"""Fetched batches become pending batches: every lane, in order, up to the first error."""

from __future__ import annotations

import random

import pytest

from sparkmirror.copy.record_ages import AgeSummary
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.wire.batch import records
from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import TRANSACTIONAL
from sparkmirror.wire.batch.lanes.lane_reason import LaneReason
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffer_pool import BufferPool, MemoryBudget
from tests.support.copy.pending_batches import make_lease
from tests.support.copy.source_batches import response_with
from tests.support.kafka.record_batches import LOG_APPEND_TIME, build_stored_batch, random_records


def plain_batch(first: int, count: int, value: bytes = b"v") -> bytes:
    return build_batch([Record(first + n, 1, b"k", value) for n in range(count)])


def queued_records(queue: PartitionQueue) -> list[Record]:
    return [r for batch in queue.ready for r in records.read_records(batch.header, batch.batch)]


def test_contiguous_batches_are_forwarded_without_a_copy() -> None:
    queue, frame = (
        PartitionQueue(make_lease(100, 50)),
        response_with(plain_batch(100, 300), plain_batch(400, 350)),
    )
    converter = BatchConverter(TargetLimits())
    assert converter.convert(queue, frame, frame.view, ()) is None
    assert [batch.spans for batch in queue.ready] == [((100, 300),), ((400, 350),)]
    assert converter.pop_lanes() == {LaneReason.PLAIN: 2}
    assert converter.pop_lanes() == {}


def test_a_response_is_retained_until_every_batch_in_it_is_acknowledged() -> None:
    queue, frame = (
        PartitionQueue(make_lease(100, 50)),
        response_with(plain_batch(100, 300), plain_batch(400, 1)),
    )
    BatchConverter(TargetLimits()).convert(queue, frame, frame.view, ())
    frame.release()
    for _ in range(2):
        sent = queue.next_to_send()
        assert sent
        queue.acknowledge(sent)
    with pytest.raises(ValueError, match="is deallocated"):
        frame.retain()


def test_a_batch_that_begins_before_the_position_is_reopened() -> None:
    queue, frame = PartitionQueue(make_lease(102, 50)), response_with(plain_batch(100, 5))
    assert BatchConverter(TargetLimits()).convert(queue, frame, frame.view, ()) is None
    assert [batch.spans for batch in queue.ready] == [((102, 3),)]


def test_compacted_batches_keep_the_source_offsets_of_their_records() -> None:
    rng = random.Random(7)
    held = random_records(rng, gaps=True)
    first = held[0].offset
    queue = PartitionQueue(make_lease(first, 50))
    frame = response_with(build_stored_batch(held, CompressionType.LZ4, tail=4))
    assert BatchConverter(TargetLimits()).convert(queue, frame, frame.view, ()) is None
    offsets = [o for p in queue.ready for s, n in p.spans for o in range(s, s + n)]
    assert offsets == [record.offset for record in held]
    assert queue.next_fetch_offset == held[-1].offset + 5
    assert [(r.key, r.value) for r in queued_records(queue)] == [(r.key, r.value) for r in held]


def test_aborted_records_are_skipped_and_the_position_advances() -> None:
    aborted = build_stored_batch([Record(100, 1, b"k", b"never")], bits=TRANSACTIONAL)
    queue, frame = (
        PartitionQueue(make_lease(100, 50)),
        response_with(aborted, plain_batch(101, 1, b"kept")),
    )
    BatchConverter(TargetLimits()).convert(
        queue, frame, frame.view, [AbortedTransaction(100, 4711)]
    )
    assert [r.value for r in queued_records(queue)] == [b"kept"]
    assert queue.next_fetch_offset == 102


def test_aborted_records_are_copied_at_read_uncommitted() -> None:
    aborted = build_stored_batch([Record(100, 1, b"k", b"never")], bits=TRANSACTIONAL)
    queue, frame = PartitionQueue(make_lease(100, 50)), response_with(aborted)
    converter = BatchConverter(TargetLimits(), read_committed=False)
    converter.convert(queue, frame, frame.view, [AbortedTransaction(100, 4711)])
    assert [r.value for r in queued_records(queue)] == [b"never"]


def test_append_time_is_kept_on_a_target_that_keeps_create_time() -> None:
    batch = build_stored_batch([Record(100, 5, None, b"v")], bits=LOG_APPEND_TIME)
    queue, frame = PartitionQueue(make_lease(100, 50)), response_with(batch)
    converter = BatchConverter(TargetLimits())
    assert converter.convert(queue, frame, frame.view, ()) is None
    assert converter.pop_lanes() == {LaneReason.LOG_APPEND_TIME: 1}


def test_a_record_too_large_for_the_target_stops_the_conversion_with_a_reason() -> None:
    queue = PartitionQueue(make_lease(100, 50))
    frame = response_with(
        plain_batch(100, 1), plain_batch(101, 1, b"x" * 5000), plain_batch(102, 1)
    )
    uncopyable = BatchConverter(TargetLimits(max_message_bytes=1000)).convert(
        queue, frame, frame.view, ()
    )
    assert uncopyable
    assert uncopyable.offset == 101
    assert "max.message.bytes" in uncopyable.reason
    assert (len(queue.ready), queue.next_fetch_offset) == (1, 101)


def test_a_batch_larger_than_a_request_is_cut_and_a_record_larger_than_that_is_named() -> None:
    limits = TargetLimits(max_produce_bytes=1000)
    queue = PartitionQueue(make_lease(100, 50))
    frame = response_with(plain_batch(100, 5, b"x" * 400), plain_batch(105, 1, b"x" * 5000))
    converter = BatchConverter(limits)
    uncopyable = converter.convert(queue, frame, frame.view, ())
    assert converter.pop_lanes() == {LaneReason.TOO_LARGE: 2}
    assert all(batch.size <= 1000 for batch in queue.ready)
    assert sum(batch.record_count for batch in queue.ready) == 5
    assert uncopyable
    assert uncopyable.reason.endswith(
        "more than the 1000 that a request of the target's producer can hold; raise its"
        " max.request.size"
    )


def test_a_damaged_batch_is_never_copied() -> None:
    batch = bytearray(plain_batch(100, 3))
    batch[-1] ^= 1
    queue, frame = PartitionQueue(make_lease(100, 50)), response_with(batch)
    uncopyable = BatchConverter(TargetLimits()).convert(queue, frame, frame.view, ())
    assert uncopyable
    assert "checksum" in uncopyable.reason
    assert not queue.ready


def test_a_batch_before_the_position_is_not_copied_again() -> None:
    queue, frame = (
        PartitionQueue(make_lease(105, 50)),
        response_with(plain_batch(100, 5), plain_batch(105, 1)),
    )
    converter = BatchConverter(TargetLimits())
    converter.convert(queue, frame, frame.view, ())
    assert [batch.spans for batch in queue.ready] == [((105, 1),)]
    assert converter.pop_lanes()[LaneReason.ALREADY_COPIED] == 1


def test_consecutive_small_batches_become_one() -> None:
    queue, frame = (
        PartitionQueue(make_lease(100, 50)),
        response_with(
            plain_batch(100, 2),
            plain_batch(102, 1),
            plain_batch(103, 3),
            plain_batch(106, 300),
            plain_batch(406, 1),
        ),
    )
    converter = BatchConverter(TargetLimits())
    assert converter.convert(queue, frame, frame.view, ()) is None
    assert [batch.spans for batch in queue.ready] == [((100, 6),), ((106, 300),), ((406, 1),)]
    assert [r.value for r in queued_records(queue)] == [b"v"] * 307
    assert queue.next_fetch_offset == 407
    assert converter.pop_lanes() == {LaneReason.MERGED: 3, LaneReason.PLAIN: 2}
    queue.check_invariants()


def test_merged_batches_stay_in_the_memory_budget_until_they_are_acknowledged() -> None:
    pool = BufferPool(MemoryBudget(1 << 20))
    fetched = plain_batch(100, 2) + plain_batch(102, 1)
    frame = pool.allocate(len(fetched))
    frame.view[:] = fetched
    queue = PartitionQueue(make_lease(100, 50))
    assert BatchConverter(TargetLimits()).convert(queue, frame, frame.view, ()) is None
    frame.release()
    assert pool.budget.used == queue.ready[0].size
    sent = queue.next_to_send()
    assert sent
    queue.acknowledge(sent)
    assert pool.budget.used == 0


def test_small_batches_with_a_marker_in_between_stay_apart() -> None:
    marker = build_stored_batch([Record(101, 1, b"\0\0\0\1", b"\0\0\0\0\0\0")], bits=48)
    queue, frame = (
        PartitionQueue(make_lease(100, 50)),
        response_with(plain_batch(100, 1), marker, plain_batch(102, 1)),
    )
    assert BatchConverter(TargetLimits()).convert(queue, frame, frame.view, ()) is None
    assert [batch.spans for batch in queue.ready] == [((100, 1),), ((102, 1),)]
    assert queue.next_fetch_offset == 103


def test_small_batches_are_merged_up_to_the_limit_of_the_target() -> None:
    frame = response_with(*(plain_batch(100 + n, 1, b"v" * 1000) for n in range(10)))
    queue = PartitionQueue(make_lease(100, 50))
    converter = BatchConverter(TargetLimits(max_message_bytes=4000))
    assert converter.convert(queue, frame, frame.view, ()) is None
    assert all(batch.size <= 4000 for batch in queue.ready)
    assert [batch.record_count for batch in queue.ready] == [3, 3, 3, 1]
    assert [o for p in queue.ready for s, n in p.spans for o in range(s, s + n)] == [
        *range(100, 110)
    ]


def test_small_batches_before_a_damaged_batch_are_queued() -> None:
    broken = bytearray(plain_batch(102, 1))
    broken[-1] ^= 1
    queue, frame = (
        PartitionQueue(make_lease(100, 50)),
        response_with(plain_batch(100, 1), plain_batch(101, 1), broken),
    )
    uncopyable = BatchConverter(TargetLimits()).convert(queue, frame, frame.view, ())
    assert uncopyable
    assert uncopyable.offset == 102
    assert [batch.spans for batch in queue.ready] == [((100, 2),)]


def test_the_ages_of_a_response_are_those_of_what_it_queues() -> None:
    batches = [
        build_batch([Record(100, 700, None, b"v"), Record(101, 750, None, b"v")]),
        build_batch([Record(102, 900, None, b"v" * 2000)]),
    ]
    queue, frame = PartitionQueue(make_lease(100, 50)), response_with(*batches)
    converter = BatchConverter(TargetLimits(), clock=lambda: 1.0)
    converter.convert(queue, frame, frame.view, ())
    assert converter.ages.summarize() == AgeSummary(
        records=3, total_ms=3 * 200, min_ms=100, max_ms=300, last_ms=100
    )
