"""What a fetch brought becomes parcels: every lane, in order, and the first refusal stops."""

from __future__ import annotations

import random

import pytest

from sparkmirror.copy.partition import Partition
from sparkmirror.copy.sorting import Sorter
from sparkmirror.wire import records
from sparkmirror.wire.aborted import AbortedTransaction
from sparkmirror.wire.buffers import Frame, Pool
from sparkmirror.wire.codecs import Codec
from sparkmirror.wire.header import TRANSACTIONAL
from sparkmirror.wire.lane import Reason
from sparkmirror.wire.records import Record, build
from sparkmirror.wire.target import Target
from tests.pure.copy.test_partition import lease
from tests.support.batches import LOG_APPEND_TIME, random_records, stored


def framed(*batches: bytes | bytearray) -> Frame:
    data = b"".join(map(bytes, batches))
    frame = Pool().lend(len(data))
    frame.view[:] = data
    return frame


def plain(first: int, count: int, value: bytes = b"v") -> bytes:
    return build([Record(first + n, 1, b"k", value) for n in range(count)])


def arrived(partition: Partition) -> list[Record]:
    return [r for parcel in partition.ready for r in records.read(parcel.header, parcel.batch)]


def test_contiguous_batches_are_forwarded_where_they_lie() -> None:
    partition, frame = Partition(lease(100, 50)), framed(plain(100, 40), plain(140, 50))
    sorter = Sorter(Target())
    assert sorter.sort(partition, frame, frame.view, ()) is None
    assert [parcel.spans for parcel in partition.ready] == [((100, 40),), ((140, 50),)]
    assert sorter.take_lanes() == {Reason.PLAIN: 2}
    assert sorter.take_lanes() == {}


def test_a_frame_is_held_until_every_parcel_in_it_is_acknowledged() -> None:
    partition, frame = Partition(lease(100, 50)), framed(plain(100, 40), plain(140, 1))
    Sorter(Target()).sort(partition, frame, frame.view, ())
    frame.release()
    for _ in range(2):
        sent = partition.next_to_send()
        assert sent
        partition.acknowledged(sent)
    with pytest.raises(ValueError, match="given back"):
        frame.hold()


def test_a_batch_that_begins_before_the_position_is_opened() -> None:
    partition, frame = Partition(lease(102, 50)), framed(plain(100, 5))
    assert Sorter(Target()).sort(partition, frame, frame.view, ()) is None
    assert [parcel.spans for parcel in partition.ready] == [((102, 3),)]


def test_compacted_batches_keep_the_source_offsets_of_what_is_left() -> None:
    rng = random.Random(7)
    held = random_records(rng, gaps=True)
    first = held[0].offset
    partition = Partition(lease(first, 50))
    frame = framed(stored(held, Codec.LZ4, tail=4))
    assert Sorter(Target()).sort(partition, frame, frame.view, ()) is None
    offsets = [o for p in partition.ready for s, n in p.spans for o in range(s, s + n)]
    assert offsets == [record.offset for record in held]
    assert partition.fetched == held[-1].offset + 5
    assert [(r.key, r.value) for r in arrived(partition)] == [(r.key, r.value) for r in held]


def test_aborted_data_is_passed_over_and_the_position_moves() -> None:
    aborted = stored([Record(100, 1, b"k", b"never")], bits=TRANSACTIONAL)
    partition, frame = Partition(lease(100, 50)), framed(aborted, plain(101, 1, b"kept"))
    Sorter(Target()).sort(partition, frame, frame.view, [AbortedTransaction(100, 4711)])
    assert [r.value for r in arrived(partition)] == [b"kept"]
    assert partition.fetched == 102


def test_aborted_data_is_copied_when_everything_is_to_be_read() -> None:
    aborted = stored([Record(100, 1, b"k", b"never")], bits=TRANSACTIONAL)
    partition, frame = Partition(lease(100, 50)), framed(aborted)
    sorter = Sorter(Target(), read_committed=False)
    sorter.sort(partition, frame, frame.view, [AbortedTransaction(100, 4711)])
    assert [r.value for r in arrived(partition)] == [b"never"]


def test_append_time_is_kept_on_a_target_that_keeps_create_time() -> None:
    batch = stored([Record(100, 5, None, b"v")], bits=LOG_APPEND_TIME)
    partition, frame = Partition(lease(100, 50)), framed(batch)
    sorter = Sorter(Target())
    assert sorter.sort(partition, frame, frame.view, ()) is None
    assert sorter.take_lanes() == {Reason.TIME_BAKED: 1}


def test_a_record_too_large_for_the_target_stops_there_and_says_so() -> None:
    partition = Partition(lease(100, 50))
    frame = framed(plain(100, 1), plain(101, 1, b"x" * 5000), plain(102, 1))
    refusal = Sorter(Target(max_message_bytes=1000)).sort(partition, frame, frame.view, ())
    assert refusal
    assert refusal.offset == 101
    assert "max.message.bytes" in refusal.why
    assert (len(partition.ready), partition.fetched) == (1, 101)


def test_a_damaged_batch_is_never_copied() -> None:
    batch = bytearray(plain(100, 3))
    batch[-1] ^= 1
    partition, frame = Partition(lease(100, 50)), framed(batch)
    refusal = Sorter(Target()).sort(partition, frame, frame.view, ())
    assert refusal
    assert "checksum" in refusal.why
    assert not partition.ready


def test_what_was_copied_before_is_not_copied_again() -> None:
    partition, frame = Partition(lease(105, 50)), framed(plain(100, 5), plain(105, 1))
    sorter = Sorter(Target())
    sorter.sort(partition, frame, frame.view, ())
    assert [parcel.spans for parcel in partition.ready] == [((105, 1),)]
    assert sorter.take_lanes()[Reason.PAST] == 1


def test_small_batches_side_by_side_become_one() -> None:
    partition, frame = (
        Partition(lease(100, 50)),
        framed(plain(100, 2), plain(102, 1), plain(103, 3), plain(106, 40), plain(146, 1)),
    )
    sorter = Sorter(Target())
    assert sorter.sort(partition, frame, frame.view, ()) is None
    assert [parcel.spans for parcel in partition.ready] == [((100, 6),), ((106, 40),), ((146, 1),)]
    assert [r.value for r in arrived(partition)] == [b"v"] * 47
    assert partition.fetched == 147
    assert sorter.take_lanes() == {Reason.MERGED: 3, Reason.PLAIN: 2}
    partition.check()


def test_small_batches_with_something_in_between_stay_apart() -> None:
    marker = stored([Record(101, 1, b"\0\0\0\1", b"\0\0\0\0\0\0")], bits=48)
    partition, frame = Partition(lease(100, 50)), framed(plain(100, 1), marker, plain(102, 1))
    assert Sorter(Target()).sort(partition, frame, frame.view, ()) is None
    assert [parcel.spans for parcel in partition.ready] == [((100, 1),), ((102, 1),)]
    assert partition.fetched == 103


def test_small_batches_are_merged_up_to_what_the_target_takes() -> None:
    frame = framed(*(plain(100 + n, 1, b"v" * 1000) for n in range(10)))
    partition = Partition(lease(100, 50))
    sorter = Sorter(Target(max_message_bytes=4000))
    assert sorter.sort(partition, frame, frame.view, ()) is None
    assert all(parcel.size <= 4000 for parcel in partition.ready)
    assert [parcel.count for parcel in partition.ready] == [3, 3, 3, 1]
    assert [o for p in partition.ready for s, n in p.spans for o in range(s, s + n)] == [
        *range(100, 110)
    ]


def test_what_was_gathered_before_a_damaged_batch_is_queued() -> None:
    broken = bytearray(plain(102, 1))
    broken[-1] ^= 1
    partition, frame = Partition(lease(100, 50)), framed(plain(100, 1), plain(101, 1), broken)
    refusal = Sorter(Target()).sort(partition, frame, frame.view, ())
    assert refusal
    assert refusal.offset == 102
    assert [parcel.spans for parcel in partition.ready] == [((100, 2),)]
