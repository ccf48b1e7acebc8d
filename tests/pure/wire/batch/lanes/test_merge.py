"""A merged batch has the records of its batches, in order, with their own timestamps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.wire.batch import records
from sparkmirror.wire.batch.checksum import verify_crc
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.lanes.merge import (
    FEW_RECORDS,
    MAX_MERGED_BYTES,
    MAX_SMALL_RECORDS,
    SmallBatch,
    fits_in_merged,
    is_consecutive,
    is_mergeable,
    max_merged_size,
    merge_batches,
)
from sparkmirror.wire.batch.records import Record, build_batch
from tests.support.kafka.record_batches import read_batch

content = st.none() | st.binary(max_size=300)
times = st.integers(-1, 2**44)
record = st.builds(
    Record,
    st.just(0),
    times,
    content,
    content,
    st.lists(st.tuples(st.binary(max_size=5), content), max_size=2).map(tuple),
)
parts = st.lists(st.lists(record, min_size=1, max_size=40), min_size=2, max_size=12)


def small_batches(held: list[list[Record]], first: int = 1000) -> list[SmallBatch]:
    """Return consecutive batches, as in a log."""
    small, offset = [], first
    for some in held:
        numbered = [one._replace(offset=offset + place) for place, one in enumerate(some)]
        batch = memoryview(build_batch(numbered))
        small.append(SmallBatch(read_header(batch), batch))
        offset += len(some)
    return small


@given(parts)
def test_a_merged_batch_has_every_record_once_in_order_and_unchanged(
    held: list[list[Record]],
) -> None:
    small = small_batches(held)
    merged = memoryview(merge_batches(small))
    header = read_header(merged)
    verify_crc(header, merged)
    wanted = [one for some in held for one in some]
    assert [r._replace(offset=0) for r in records.read_records(header, merged)] == wanted
    assert [r.offset for r in records.read_records(header, merged)] == list(range(len(wanted)))
    assert header.record_count == len(wanted) == header.last_offset_delta + 1
    assert header.max_timestamp == max(one.timestamp for one in wanted)
    assert header.producer_id == -1
    assert len(merged) <= sum(max_merged_size(one.header) for one in small)


def test_another_client_reads_the_same_records() -> None:
    held = [[Record(0, 5 + n, b"key", b"value %d" % n, ((b"h", None),))] for n in range(200)]
    merged = merge_batches(small_batches(held))
    assert [(r.timestamp, r.value) for r in read_batch(merged)] == [
        (some[0].timestamp, some[0].value) for some in held
    ]


def test_large_and_compressed_batches_are_not_merged() -> None:
    (one,) = small_batches([[Record(0, 1, b"k", b"v")]])
    assert is_mergeable(one.header)
    assert is_mergeable(one.header._replace(record_count=MAX_SMALL_RECORDS))
    assert not is_mergeable(one.header._replace(record_count=MAX_SMALL_RECORDS + 1))
    assert not is_mergeable(one.header._replace(record_count=FEW_RECORDS + 1), FEW_RECORDS)
    assert not is_mergeable(one.header._replace(attributes=3))
    assert not is_mergeable(one.header._replace(length=MAX_MERGED_BYTES))


def test_a_merged_batch_stays_below_the_limit() -> None:
    (one,) = small_batches([[Record(0, 1, b"k", b"v" * 100)]])
    assert fits_in_merged(0, one.header, 1 << 20)
    assert not fits_in_merged(MAX_MERGED_BYTES, one.header, 1 << 20)
    assert not fits_in_merged(0, one.header, 100)


def test_batches_with_distant_timestamps_are_not_merged() -> None:
    hour = 3_600_000
    first, second, third = small_batches(
        [[Record(0, at, b"k", b"v")] for at in (hour, 2 * hour, 5 * hour)]
    )
    assert is_consecutive(first.header, second.header)
    assert not is_consecutive(second.header, third.header)
    assert not is_consecutive(first.header, third.header)
