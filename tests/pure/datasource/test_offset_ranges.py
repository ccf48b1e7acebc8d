"""Ranges of offsets: limits in proportion to lags, and parts for more tasks."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from sparkmirror.datasource.offset_positions import offsets_from_json, offsets_to_json
from sparkmirror.datasource.offset_ranges import OffsetRange, limit_ends, split_ranges
from sparkmirror.model import TopicPartition


def offsets_of(*offsets: int) -> dict[TopicPartition, int]:
    return {TopicPartition("t", number): offset for number, offset in enumerate(offsets)}


def range_of(start: int, end: int, number: int = 0) -> OffsetRange:
    return OffsetRange(TopicPartition("t", number), start, end)


def test_offsets_have_the_form_of_sparks_own_source() -> None:
    offsets = {TopicPartition("b", 10): 7, TopicPartition("b", 9): 8, TopicPartition("a", 0): 1}
    assert offsets_to_json(offsets) == {"a": {"0": 1}, "b": {"9": 8, "10": 7}}
    assert offsets_from_json(offsets_to_json(offsets)) == offsets


def test_a_limit_is_divided_in_proportion_to_the_lags() -> None:
    assert limit_ends(offsets_of(0, 100), offsets_of(300, 200), 100) == offsets_of(75, 125)


def test_a_limit_above_all_lags_changes_nothing() -> None:
    assert limit_ends(offsets_of(0, 5), offsets_of(10, 5), 10) == offsets_of(10, 5)


def test_a_small_lag_does_not_wait_for_a_large_one() -> None:
    assert limit_ends(offsets_of(0, 0), offsets_of(1_000_000, 1), 10) == offsets_of(9, 1)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 1000)), min_size=1, max_size=8),
    st.integers(1, 2000),
)
@example([(0, 1), (0, 1), (0, 4)], 3)
def test_every_lag_shrinks_and_no_end_is_exceeded(lags: list[tuple[int, int]], limit: int) -> None:
    starts = offsets_of(*(start for start, _ in lags))
    ends = offsets_of(*(start + lag for start, lag in lags))
    limited = limit_ends(starts, ends, limit)
    for partition, end in ends.items():
        assert limited[partition] <= end
        assert (limited[partition] > starts[partition]) == (end > starts[partition])
    read = sum(limited[partition] - starts[partition] for partition in ends)
    assert read <= limit + len(lags), "at most one offset more for each partition"


def test_long_ranges_get_more_parts() -> None:
    parts = split_ranges([range_of(0, 90), range_of(0, 10, 1)], 5)
    assert parts == [
        *(range_of(at, at + 18) for at in range(0, 90, 18)),
        range_of(0, 10, 1),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 300)), min_size=1, max_size=6),
    st.integers(0, 40),
)
def test_parts_cover_every_offset_once_and_in_order(
    lengths: list[tuple[int, int]], wanted: int
) -> None:
    ranges = [
        range_of(start, start + length, number) for number, (start, length) in enumerate(lengths)
    ]
    parts = split_ranges(ranges, wanted)
    assert [(one.partition, at) for one in parts for at in range(one.start, one.end)] == [
        (one.partition, at) for one in ranges for at in range(one.start, one.end)
    ]
    assert len(parts) >= min(wanted, sum(length for _, length in lengths))
