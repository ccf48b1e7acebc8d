"""Merged batches hold the records of their parts, in order, with their own times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.wire import records
from sparkmirror.wire.checksum import verify
from sparkmirror.wire.header import read_header
from sparkmirror.wire.merge import MOST_BYTES, Small, belongs, fits, is_small, merge, merged_size
from sparkmirror.wire.records import Record, build
from tests.support.batches import consumed

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


def laid(held: list[list[Record]], first: int = 1000) -> list[Small]:
    """Batches one after the other, as a log holds them."""
    small, offset = [], first
    for some in held:
        numbered = [one._replace(offset=offset + place) for place, one in enumerate(some)]
        batch = memoryview(build(numbered))
        small.append(Small(read_header(batch), batch))
        offset += len(some)
    return small


@given(parts)
def test_every_record_is_there_once_in_order_and_unchanged(held: list[list[Record]]) -> None:
    small = laid(held)
    merged = memoryview(merge(small))
    header = read_header(merged)
    verify(header, merged)
    wanted = [one for some in held for one in some]
    assert [r._replace(offset=0) for r in records.read(header, merged)] == wanted
    assert [r.offset for r in records.read(header, merged)] == list(range(len(wanted)))
    assert header.record_count == len(wanted) == header.last_offset_delta + 1
    assert header.max_timestamp == max(one.timestamp for one in wanted)
    assert header.producer_id == -1
    assert len(merged) <= sum(merged_size(one.header) for one in small)


def test_another_library_reads_the_same() -> None:
    held = [[Record(0, 5 + n, b"key", b"value %d" % n, ((b"h", None),))] for n in range(200)]
    merged = merge(laid(held))
    assert [(r.timestamp, r.value) for r in consumed(merged)] == [
        (some[0].timestamp, some[0].value) for some in held
    ]


def test_batches_of_many_records_and_compressed_ones_are_not_small() -> None:
    (one,) = laid([[Record(0, 1, b"k", b"v")]])
    assert is_small(one.header)
    assert not is_small(one.header._replace(record_count=33))
    assert not is_small(one.header._replace(attributes=3))
    assert not is_small(one.header._replace(length=MOST_BYTES))


def test_what_is_merged_stays_below_the_limit() -> None:
    (one,) = laid([[Record(0, 1, b"k", b"v" * 100)]])
    assert fits(0, one.header, 1 << 20)
    assert not fits(MOST_BYTES, one.header, 1 << 20)
    assert not fits(0, one.header, 100)


def test_batches_of_another_time_stay_apart() -> None:
    hour = 3_600_000
    first, second, third = laid([[Record(0, at, b"k", b"v")] for at in (hour, 2 * hour, 5 * hour)])
    assert belongs(first.header, second.header)
    assert not belongs(second.header, third.header)
    assert not belongs(first.header, third.header)
