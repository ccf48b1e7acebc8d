"""What a fetch brought becomes parcels: every lane, in order, and the first refusal stops."""

from __future__ import annotations

import random

import pytest

from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.partition_queue import PartitionQueue
from sparkmirror.wire.batch import records
from sparkmirror.wire.batch.aborted_transactions import AbortedTransaction
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import TRANSACTIONAL
from sparkmirror.wire.batch.lane import LaneReason
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.buffers import BufferPool, ResponseFrame
from tests.pure.copy.task.test_partition_queue import lease
from tests.support.kafka.record_batches import LOG_APPEND_TIME, build_stored_batch, random_records


def framed(*batches: bytes | bytearray) -> ResponseFrame:
    data = b"".join(map(bytes, batches))
    frame = BufferPool().allocate(len(data))
    frame.view[:] = data
    return frame


def plain(first: int, count: int, value: bytes = b"v") -> bytes:
    return build_batch([Record(first + n, 1, b"k", value) for n in range(count)])


def arrived(partition: PartitionQueue) -> list[Record]:
    return [
        r for parcel in partition.ready for r in records.read_records(parcel.header, parcel.batch)
    ]


def test_contiguous_batches_are_forwarded_where_they_lie() -> None:
    partition, frame = PartitionQueue(lease(100, 50)), framed(plain(100, 40), plain(140, 50))
    sorter = BatchConverter(TargetLimits())
    assert sorter.convert(partition, frame, frame.view, ()) is None
    assert [parcel.spans for parcel in partition.ready] == [((100, 40),), ((140, 50),)]
    assert sorter.pop_lanes() == {LaneReason.PLAIN: 2}
    assert sorter.pop_lanes() == {}


def test_a_frame_is_held_until_every_parcel_in_it_is_acknowledged() -> None:
    partition, frame = PartitionQueue(lease(100, 50)), framed(plain(100, 40), plain(140, 1))
    BatchConverter(TargetLimits()).convert(partition, frame, frame.view, ())
    frame.release()
    for _ in range(2):
        sent = partition.next_to_send()
        assert sent
        partition.acknowledge(sent)
    with pytest.raises(ValueError, match="given back"):
        frame.retain()


def test_a_batch_that_begins_before_the_position_is_opened() -> None:
    partition, frame = PartitionQueue(lease(102, 50)), framed(plain(100, 5))
    assert BatchConverter(TargetLimits()).convert(partition, frame, frame.view, ()) is None
    assert [parcel.spans for parcel in partition.ready] == [((102, 3),)]


def test_compacted_batches_keep_the_source_offsets_of_what_is_left() -> None:
    rng = random.Random(7)
    held = random_records(rng, gaps=True)
    first = held[0].offset
    partition = PartitionQueue(lease(first, 50))
    frame = framed(build_stored_batch(held, CompressionType.LZ4, tail=4))
    assert BatchConverter(TargetLimits()).convert(partition, frame, frame.view, ()) is None
    offsets = [o for p in partition.ready for s, n in p.spans for o in range(s, s + n)]
    assert offsets == [record.offset for record in held]
    assert partition.next_fetch_offset == held[-1].offset + 5
    assert [(r.key, r.value) for r in arrived(partition)] == [(r.key, r.value) for r in held]


def test_aborted_data_is_passed_over_and_the_position_moves() -> None:
    aborted = build_stored_batch([Record(100, 1, b"k", b"never")], bits=TRANSACTIONAL)
    partition, frame = PartitionQueue(lease(100, 50)), framed(aborted, plain(101, 1, b"kept"))
    BatchConverter(TargetLimits()).convert(
        partition, frame, frame.view, [AbortedTransaction(100, 4711)]
    )
    assert [r.value for r in arrived(partition)] == [b"kept"]
    assert partition.next_fetch_offset == 102


def test_aborted_data_is_copied_when_everything_is_to_be_read() -> None:
    aborted = build_stored_batch([Record(100, 1, b"k", b"never")], bits=TRANSACTIONAL)
    partition, frame = PartitionQueue(lease(100, 50)), framed(aborted)
    sorter = BatchConverter(TargetLimits(), read_committed=False)
    sorter.convert(partition, frame, frame.view, [AbortedTransaction(100, 4711)])
    assert [r.value for r in arrived(partition)] == [b"never"]


def test_append_time_is_kept_on_a_target_that_keeps_create_time() -> None:
    batch = build_stored_batch([Record(100, 5, None, b"v")], bits=LOG_APPEND_TIME)
    partition, frame = PartitionQueue(lease(100, 50)), framed(batch)
    sorter = BatchConverter(TargetLimits())
    assert sorter.convert(partition, frame, frame.view, ()) is None
    assert sorter.pop_lanes() == {LaneReason.LOG_APPEND_TIME: 1}


def test_a_record_too_large_for_the_target_stops_there_and_says_so() -> None:
    partition = PartitionQueue(lease(100, 50))
    frame = framed(plain(100, 1), plain(101, 1, b"x" * 5000), plain(102, 1))
    refusal = BatchConverter(TargetLimits(max_message_bytes=1000)).convert(
        partition, frame, frame.view, ()
    )
    assert refusal
    assert refusal.offset == 101
    assert "max.message.bytes" in refusal.reason
    assert (len(partition.ready), partition.next_fetch_offset) == (1, 101)


def test_a_damaged_batch_is_never_copied() -> None:
    batch = bytearray(plain(100, 3))
    batch[-1] ^= 1
    partition, frame = PartitionQueue(lease(100, 50)), framed(batch)
    refusal = BatchConverter(TargetLimits()).convert(partition, frame, frame.view, ())
    assert refusal
    assert "checksum" in refusal.reason
    assert not partition.ready


def test_what_was_copied_before_is_not_copied_again() -> None:
    partition, frame = PartitionQueue(lease(105, 50)), framed(plain(100, 5), plain(105, 1))
    sorter = BatchConverter(TargetLimits())
    sorter.convert(partition, frame, frame.view, ())
    assert [parcel.spans for parcel in partition.ready] == [((105, 1),)]
    assert sorter.pop_lanes()[LaneReason.ALREADY_COPIED] == 1


def test_small_batches_side_by_side_become_one() -> None:
    partition, frame = (
        PartitionQueue(lease(100, 50)),
        framed(plain(100, 2), plain(102, 1), plain(103, 3), plain(106, 40), plain(146, 1)),
    )
    sorter = BatchConverter(TargetLimits())
    assert sorter.convert(partition, frame, frame.view, ()) is None
    assert [parcel.spans for parcel in partition.ready] == [((100, 6),), ((106, 40),), ((146, 1),)]
    assert [r.value for r in arrived(partition)] == [b"v"] * 47
    assert partition.next_fetch_offset == 147
    assert sorter.pop_lanes() == {LaneReason.MERGED: 3, LaneReason.PLAIN: 2}
    partition.check_invariants()


def test_small_batches_with_something_in_between_stay_apart() -> None:
    marker = build_stored_batch([Record(101, 1, b"\0\0\0\1", b"\0\0\0\0\0\0")], bits=48)
    partition, frame = PartitionQueue(lease(100, 50)), framed(plain(100, 1), marker, plain(102, 1))
    assert BatchConverter(TargetLimits()).convert(partition, frame, frame.view, ()) is None
    assert [parcel.spans for parcel in partition.ready] == [((100, 1),), ((102, 1),)]
    assert partition.next_fetch_offset == 103


def test_small_batches_are_merged_up_to_what_the_target_takes() -> None:
    frame = framed(*(plain(100 + n, 1, b"v" * 1000) for n in range(10)))
    partition = PartitionQueue(lease(100, 50))
    sorter = BatchConverter(TargetLimits(max_message_bytes=4000))
    assert sorter.convert(partition, frame, frame.view, ()) is None
    assert all(parcel.size <= 4000 for parcel in partition.ready)
    assert [parcel.record_count for parcel in partition.ready] == [3, 3, 3, 1]
    assert [o for p in partition.ready for s, n in p.spans for o in range(s, s + n)] == [
        *range(100, 110)
    ]


def test_what_was_gathered_before_a_damaged_batch_is_queued() -> None:
    broken = bytearray(plain(102, 1))
    broken[-1] ^= 1
    partition, frame = PartitionQueue(lease(100, 50)), framed(plain(100, 1), plain(101, 1), broken)
    refusal = BatchConverter(TargetLimits()).convert(partition, frame, frame.view, ())
    assert refusal
    assert refusal.offset == 102
    assert [parcel.spans for parcel in partition.ready] == [((100, 2),)]
