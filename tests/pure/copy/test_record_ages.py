"""Record age and replication latency, from timestamps of batches alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.record_ages import AgeCounter, AgeSummary, RecordAges, ReportedAges

NOW_MS = 1_000_000


def test_the_ages_of_a_batch_lie_between_its_timestamps() -> None:
    counter = AgeCounter()
    assert counter.summarize() == AgeSummary()
    counter.add(NOW_MS - 300, NOW_MS - 100, 2, NOW_MS)
    assert counter.summarize() == AgeSummary(
        records=2, total_ms=400, min_ms=100, max_ms=300, last_ms=100
    )


def test_batches_add_up_and_the_last_one_gives_the_last_value() -> None:
    counter = AgeCounter()
    counter.add(NOW_MS - 10, NOW_MS - 10, 1, NOW_MS)
    counter.add(NOW_MS - 50, NOW_MS - 50, 3, NOW_MS + 1)
    assert counter.summarize() == AgeSummary(
        records=4, total_ms=10 + 3 * 51, min_ms=10, max_ms=51, last_ms=51
    )


def test_records_without_a_timestamp_have_no_age() -> None:
    counter = AgeCounter()
    counter.add(-1, -1, 5, NOW_MS)
    assert counter.records == 0


@pytest.mark.parametrize("base_timestamp", [-1, NOW_MS + 5])
def test_a_first_timestamp_that_cannot_be_one_is_not_used(base_timestamp: int) -> None:
    """After a compaction the field may have the time at which tombstones go."""
    counter = AgeCounter()
    counter.add(base_timestamp, NOW_MS - 9, 1, NOW_MS)
    assert counter.summarize() == AgeSummary(1, 9, 9, 9, 9)


@given(
    st.lists(
        st.lists(st.integers(0, 2 * NOW_MS), min_size=1, max_size=4).map(sorted),
        min_size=1,
        max_size=5,
    )
)
def test_bounds_are_those_of_the_records_and_the_average_lies_between(
    batches: list[list[int]],
) -> None:
    counter = AgeCounter()
    for timestamps in batches:
        counter.add(timestamps[0], timestamps[-1], len(timestamps), NOW_MS)
    ages = [NOW_MS - timestamp for timestamps in batches for timestamp in timestamps]
    found = counter.summarize()
    assert (found.records, found.min_ms, found.max_ms) == (len(ages), min(ages), max(ages))
    assert found.min_ms - 1 <= found.total_ms / found.records <= found.max_ms


def test_reports_add_up_and_bounds_are_of_the_last_three() -> None:
    reported = ReportedAges()
    assert reported.summarize() == RecordAges()
    for low, high in ((1, 900), (5, 10), (6, 20), (7, 15)):
        fetched = AgeSummary(2, 10, low, high, low)
        reported.add(RecordAges(fetched, fetched._replace(records=1)))
    reported.add(RecordAges())
    assert reported.summarize() == RecordAges(
        AgeSummary(8, 40, 5, 20, 7), AgeSummary(4, 40, 5, 20, 7)
    )


def test_ages_survive_json() -> None:
    some = RecordAges(AgeSummary(1, 2, 3, 4, 5), AgeSummary(6, 7, 8, 9, 10))
    assert RecordAges.from_json(json.loads(json.dumps(some))) == some
