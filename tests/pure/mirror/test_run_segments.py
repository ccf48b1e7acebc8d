"""Run maps in segments: the same answers as one map, and little to write."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import RecordError, RunConflict
from sparkmirror.mirror.connect_offsets import StoredOffset
from sparkmirror.mirror.run_records import (
    KnownRuns,
    Segment,
    SegmentKey,
    key_of,
    segment_of,
    to_stored,
)
from sparkmirror.mirror.run_segments import SegmentedRuns, combined
from sparkmirror.mirror.runs import Run, RunMap
from sparkmirror.model import TopicPartition

ORDERS = TopicPartition("orders", 0)
SEGMENT_RUNS, MOST_SEGMENTS = 4, 100
HOLES = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5))


def _runs(holes: Sequence[tuple[int, int, int]]) -> list[Run]:
    runs, source, target = [], 0, 0
    for source_hole, target_hole, length in holes:
        runs.append(Run(source + source_hole, target + target_hole, length))
        source, target = runs[-1].source_first + length, runs[-1].target_first + length
    return runs


def _key(number: int, connector: str = "c", cluster: str = "A") -> SegmentKey:
    return SegmentKey(connector=connector, cluster=cluster, partition=ORDERS, number=number)


def _small() -> SegmentedRuns:
    """A map of few and short segments."""
    return SegmentedRuns(segment_runs=SEGMENT_RUNS, most_segments=MOST_SEGMENTS)


def _gappy(count: int, first: int = 0) -> SegmentedRuns:
    kept = _small()
    for n in range(first, first + count):
        kept.append(3 * n, 2 * n, 1)
    return kept


@given(st.lists(HOLES, min_size=1, max_size=40))
def test_segments_answer_as_one_map(holes: list[tuple[int, int, int]]) -> None:
    whole, kept = RunMap(), _small()
    for run in _runs(holes):
        whole.append(*run)
        kept.append(*run)
    again = SegmentedRuns.restored(kept.changes().segments)
    joined = combined(kept.changes().segments.values())
    assert list(kept) == list(whole) == list(again) == list(joined)
    assert (kept.source_end, kept.target_end) == (whole.source_end, whole.target_end)
    end = whole.source_end or 0
    assert joined.downstream_many(range(end + 3)) == whole.downstream_many(range(end + 3))


@given(st.lists(HOLES, min_size=2, max_size=30), st.data())
@settings(max_examples=40)
def test_what_may_be_missing_is_never_answered_too_high(
    holes: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    runs = _runs(holes)
    lost = data.draw(st.integers(1, len(runs)))
    found = data.draw(st.integers(lost, len(runs)))
    truth, kept = RunMap(), _small()
    for run in runs:
        truth.append(*run)
    for run in runs[:lost]:
        kept.append(*run)
    kept.be_coarse()
    for run in runs[found:]:
        kept.append(*run)
    known = combined(kept.changes().segments.values())
    for position in range((truth.source_end or 0) + 2):
        exact, answer = truth.downstream(position), known.downstream(position)
        assert answer is None or exact is None or answer <= exact


def test_only_what_changed_is_written_again() -> None:
    kept = _gappy(SEGMENT_RUNS + 2)
    assert sorted(kept.changes().segments) == [0, 1]
    kept.saved()
    assert kept.changes() == ({}, ())
    kept.append(3 * SEGMENT_RUNS + 100, 2 * SEGMENT_RUNS + 100, 1)
    assert list(kept.changes().segments) == [1]


def test_a_map_that_grows_for_ever_drops_its_oldest_segments() -> None:
    kept = _gappy(SEGMENT_RUNS * (MOST_SEGMENTS + 1) + 1)
    assert kept.changes().removed == (0, 1)
    assert len(kept) == SEGMENT_RUNS * (MOST_SEGMENTS - 1) + 1


def test_a_reset_removes_all_and_never_uses_a_number_again() -> None:
    kept = _gappy(SEGMENT_RUNS + 1)
    kept.saved()
    kept.reset()
    kept.append(0, 70, 5)
    changes = kept.changes()
    assert changes.removed == (0, 1)
    assert list(changes.segments) == [2]


def test_what_is_copied_again_at_the_same_place_is_no_news() -> None:
    kept = SegmentedRuns()
    kept.append(0, 100, 10)
    kept.append(5, 105, 10)
    kept.append(3, 103, 2)
    assert list(kept) == [Run(0, 100, 15)]


@pytest.mark.parametrize("run", [(5, 200, 5), (20, 105, 5), (5, 104, 10)])
def test_what_contradicts_is_refused(run: tuple[int, int, int]) -> None:
    kept = SegmentedRuns()
    kept.append(0, 100, 10)
    with pytest.raises(RunConflict):
        kept.append(*run)


def test_leftovers_of_an_older_life_are_thrown_away() -> None:
    old, new = _gappy(3, first=100), _small()
    new.append(0, 0, 5)
    segments = {0: old.changes().segments[0], 1: new.changes().segments[0]}
    restored = SegmentedRuns.restored(segments)
    assert list(restored) == [Run(0, 0, 5)]
    assert restored.changes().removed == (0,)
    assert list(combined(segments.values())) == [Run(0, 0, 5)]


def test_a_segment_survives_the_offsets_topic() -> None:
    runs = combined(_gappy(300).changes().segments.values())
    segment = Segment(runs=runs, position=901, expected=600, target_topic_id="ab12")
    stored = StoredOffset.decode(to_stored(_key(7), segment).encode())
    assert key_of(stored) == _key(7)
    read = segment_of(stored)
    assert read is not None
    assert (read.position, read.expected, read.target_topic_id) == (901, 600, "ab12")
    assert list(read.runs) == list(runs)
    assert len(to_stored(_key(7), segment).encode().value or b"") < 700


def test_other_records_of_the_offsets_topic_are_passed_over() -> None:
    offset = StoredOffset(
        connector="c",
        partition={"cluster": "A", "partition": 0, "topic": "orders"},
        offset={"offset": 7},
    )
    assert key_of(offset) is None
    known = KnownRuns("A")
    known.apply(offset)
    assert len(known) == 0


def test_a_damaged_segment_is_refused() -> None:
    stored = to_stored(_key(0), Segment(runs=RunMap(), position=0, expected=0))
    assert stored.offset is not None
    damaged = StoredOffset(
        connector=stored.connector,
        partition=stored.partition,
        offset={**stored.offset, "runs": "bm90IHppcHBlZA=="},
    )
    with pytest.raises(RecordError):
        segment_of(damaged)


def _segment(source: int, target: int, length: int, topic_id: str = "") -> Segment:
    runs = RunMap()
    runs.append(source, target, length)
    return Segment(
        runs=runs,
        position=source + length,
        expected=target + length,
        target_topic_id=topic_id,
    )


def test_known_runs_follow_the_connector_that_wrote_last() -> None:
    known = KnownRuns("A")
    known.apply(to_stored(_key(0, connector="old"), _segment(0, 0, 10)))
    known.apply(to_stored(_key(0, connector="new"), _segment(0, 50, 10)))
    known.apply(to_stored(_key(0, connector="new", cluster="B"), _segment(0, 99, 10)))
    assert known[ORDERS].downstream(5) == 55
    known.apply(to_stored(_key(1, connector="new"), _segment(10, 60, 10)))
    assert known[ORDERS].downstream(15) == 65
    known.apply(to_stored(_key(0, connector="new"), None))
    assert known[ORDERS].downstream(5) is None


def test_runs_into_a_topic_that_was_created_again_mean_nothing() -> None:
    known = KnownRuns("A")
    known.apply(to_stored(_key(0), _segment(0, 0, 10, topic_id="first")))
    known.believe({ORDERS: "second"})
    assert ORDERS not in known
    known.apply(to_stored(_key(1), _segment(10, 0, 10, topic_id="second")))
    assert list(known[ORDERS]) == [Run(10, 0, 10)]
