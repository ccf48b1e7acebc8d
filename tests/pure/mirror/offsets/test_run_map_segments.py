"""A segmented run map translates as one map, and only changed segments are written."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.errors import RecordError, RunMapConflict
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap
from sparkmirror.mirror.offsets.run_map_records import (
    RunMapSegment,
    RunMapSegmentKey,
    RunMapsState,
    decode_segment,
    decode_segment_key,
    encode_segment,
)
from sparkmirror.mirror.offsets.run_map_segments import SegmentedRunMap, combine_segments
from sparkmirror.model import TopicPartition

ORDERS = TopicPartition("orders", 0)
RUNS_PER_SEGMENT, MAX_SEGMENTS = 4, 100
GAPS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5))


def _runs(gaps: Sequence[tuple[int, int, int]]) -> list[OffsetRun]:
    runs, source, target = [], 0, 0
    for source_gap, target_gap, length in gaps:
        runs.append(OffsetRun(source + source_gap, target + target_gap, length))
        source, target = runs[-1].source_first + length, runs[-1].target_first + length
    return runs


def _key(number: int, connector: str = "c", cluster: str = "A") -> RunMapSegmentKey:
    return RunMapSegmentKey(connector=connector, cluster=cluster, partition=ORDERS, number=number)


def _small_map() -> SegmentedRunMap:
    """Return a map with few and short segments."""
    return SegmentedRunMap(runs_per_segment=RUNS_PER_SEGMENT, max_segments=MAX_SEGMENTS)


def _map_with_gaps(count: int, first: int = 0) -> SegmentedRunMap:
    kept = _small_map()
    for n in range(first, first + count):
        kept.append(3 * n, 2 * n, 1)
    return kept


@given(st.lists(GAPS, min_size=1, max_size=40))
def test_segments_translate_as_one_map(gaps: list[tuple[int, int, int]]) -> None:
    whole, kept = RunMap(), _small_map()
    for run in _runs(gaps):
        whole.append(*run)
        kept.append(*run)
    again = SegmentedRunMap.restore(kept.unsaved_changes().segments)
    joined = combine_segments(kept.unsaved_changes().segments.values())
    assert list(kept) == list(whole) == list(again) == list(joined)
    assert (kept.source_end, kept.target_end) == (whole.source_end, whole.target_end)
    end = whole.source_end or 0
    for position in range(end + 3):
        assert joined.translate_downstream(position) == whole.translate_downstream(position)


@given(st.lists(GAPS, min_size=2, max_size=30), st.data())
@settings(max_examples=40)
def test_a_map_without_some_runs_never_translates_too_high(
    gaps: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    runs = _runs(gaps)
    lost = data.draw(st.integers(1, len(runs)))
    found = data.draw(st.integers(lost, len(runs)))
    truth, kept = RunMap(), _small_map()
    for run in runs:
        truth.append(*run)
    for run in runs[:lost]:
        kept.append(*run)
    kept.mark_coarse()
    for run in runs[found:]:
        kept.append(*run)
    known = combine_segments(kept.unsaved_changes().segments.values())
    for position in range((truth.source_end or 0) + 2):
        exact, answer = truth.translate_downstream(position), known.translate_downstream(position)
        assert answer is None or exact is None or answer <= exact


def test_only_changed_segments_are_written_again() -> None:
    kept = _map_with_gaps(RUNS_PER_SEGMENT + 2)
    assert sorted(kept.unsaved_changes().segments) == [0, 1]
    kept.mark_saved()
    assert kept.unsaved_changes() == ({}, ())
    kept.append(3 * RUNS_PER_SEGMENT + 100, 2 * RUNS_PER_SEGMENT + 100, 1)
    assert list(kept.unsaved_changes().segments) == [1]


def test_a_map_beyond_its_limit_drops_its_oldest_segments() -> None:
    kept = _map_with_gaps(RUNS_PER_SEGMENT * (MAX_SEGMENTS + 1) + 1)
    assert kept.unsaved_changes().removed == (0, 1)
    assert len(kept) == RUNS_PER_SEGMENT * (MAX_SEGMENTS - 1) + 1


def test_a_reset_removes_all_segments_and_uses_no_number_again() -> None:
    kept = _map_with_gaps(RUNS_PER_SEGMENT + 1)
    kept.mark_saved()
    kept.reset()
    kept.append(0, 70, 5)
    changes = kept.unsaved_changes()
    assert changes.removed == (0, 1)
    assert list(changes.segments) == [2]


def test_a_run_copied_again_to_the_same_offsets_changes_nothing() -> None:
    kept = SegmentedRunMap()
    kept.append(0, 100, 10)
    kept.append(5, 105, 10)
    kept.append(3, 103, 2)
    assert list(kept) == [OffsetRun(0, 100, 15)]


@pytest.mark.parametrize("run", [(5, 200, 5), (20, 105, 5), (5, 104, 10)])
def test_a_run_that_contradicts_the_map_is_refused(run: tuple[int, int, int]) -> None:
    kept = SegmentedRunMap()
    kept.append(0, 100, 10)
    with pytest.raises(RunMapConflict):
        kept.append(*run)


def test_segments_from_before_a_reset_are_removed() -> None:
    old, new = _map_with_gaps(3, first=100), _small_map()
    new.append(0, 0, 5)
    segments = {0: old.unsaved_changes().segments[0], 1: new.unsaved_changes().segments[0]}
    restored = SegmentedRunMap.restore(segments)
    assert list(restored) == [OffsetRun(0, 0, 5)]
    assert restored.unsaved_changes().removed == (0,)
    assert list(combine_segments(segments.values())) == [OffsetRun(0, 0, 5)]


def test_a_segment_is_read_back_from_the_offsets_topic() -> None:
    runs = combine_segments(_map_with_gaps(300).unsaved_changes().segments.values())
    segment = RunMapSegment(
        runs=runs, source_position=901, next_target_offset=600, target_topic_id="ab12"
    )
    stored = StoredOffset.decode(encode_segment(_key(7), segment).encode())
    assert decode_segment_key(stored) == _key(7)
    read = decode_segment(stored)
    assert read is not None
    assert (read.source_position, read.next_target_offset, read.target_topic_id) == (
        901,
        600,
        "ab12",
    )
    assert list(read.runs) == list(runs)
    assert len(encode_segment(_key(7), segment).encode().value or b"") < 700


def test_other_records_of_the_offsets_topic_are_ignored() -> None:
    offset = StoredOffset(
        connector="c",
        partition={"cluster": "A", "partition": 0, "topic": "orders"},
        offset={"offset": 7},
    )
    assert decode_segment_key(offset) is None
    known = RunMapsState("A")
    known.apply(offset)
    assert len(known) == 0


def test_a_damaged_segment_is_refused() -> None:
    stored = encode_segment(
        _key(0), RunMapSegment(runs=RunMap(), source_position=0, next_target_offset=0)
    )
    assert stored.offset is not None
    damaged = StoredOffset(
        connector=stored.connector,
        partition=stored.partition,
        offset={**stored.offset, "runs": "bm90IHppcHBlZA=="},
    )
    with pytest.raises(RecordError):
        decode_segment(damaged)


def _segment(source: int, target: int, length: int, topic_id: str = "") -> RunMapSegment:
    runs = RunMap()
    runs.append(source, target, length)
    return RunMapSegment(
        runs=runs,
        source_position=source + length,
        next_target_offset=target + length,
        target_topic_id=topic_id,
    )


def test_runs_of_the_connector_that_wrote_last_are_used() -> None:
    known = RunMapsState("A")
    known.apply(encode_segment(_key(0, connector="old"), _segment(0, 0, 10)))
    known.apply(encode_segment(_key(0, connector="new"), _segment(0, 50, 10)))
    known.apply(encode_segment(_key(0, connector="new", cluster="B"), _segment(0, 99, 10)))
    assert known[ORDERS].translate_downstream(5) == 55
    known.apply(encode_segment(_key(1, connector="new"), _segment(10, 60, 10)))
    assert known[ORDERS].translate_downstream(15) == 65
    known.apply(encode_segment(_key(0, connector="new"), None))
    assert known[ORDERS].translate_downstream(5) is None


def test_runs_to_a_recreated_target_topic_are_ignored() -> None:
    known = RunMapsState("A")
    known.apply(encode_segment(_key(0), _segment(0, 0, 10, topic_id="first")))
    known.set_target_topic_ids({ORDERS: "second"})
    assert ORDERS not in known
    known.apply(encode_segment(_key(1), _segment(10, 0, 10, topic_id="second")))
    assert list(known[ORDERS]) == [OffsetRun(10, 0, 10)]
