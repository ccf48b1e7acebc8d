"""Records, bytes, rates, lag and ETA of a copy, computed from snapshots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.cli.copy.completion import BlockedPartition
from sparkmirror.cli.copy.progress_tracker import CumulativeCounter, ProgressTracker, SlidingRate
from sparkmirror.cli.copy.ranges import PartitionRange
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.model import TopicPartition

RANGES = {
    TopicPartition("a", 0): PartitionRange(
        start_offset=100, end_offset=300, records_before=80, is_in_ledger=True
    ),
    TopicPartition("a", 1): PartitionRange(start_offset=0, end_offset=100),
    TopicPartition("b", 0): PartitionRange(start_offset=0, end_offset=0),
}


def _tracker(*, has_end: bool = True) -> ProgressTracker:
    return ProgressTracker(RANGES, {"a": "A.a", "b": "A.b"}, has_end=has_end, started_at=0.0)


def _snapshot(*partitions: tuple[str, int, int], size: int = 0, end: int = -1) -> CopySnapshot:
    """Partitions are (name, position, records); each has copied `size` bytes."""
    return CopySnapshot(
        partitions={
            key: PartitionView(
                remote="",
                task=0,
                state="leased",
                position=position,
                records=records,
                bytes=size,
                end=end,
            )
            for key, position, records in partitions
        },
    )


def test_lag_before_the_first_snapshot_is_the_whole_range() -> None:
    first, second = _tracker().update(CopySnapshot(), 1.0).topics
    assert (first.lag, first.fraction, first.records, first.eta_s) == (300, 0.0, 0, None)
    assert (second.lag, second.fraction, second.eta_s) == (0, 1.0, 0.0)


def test_records_come_from_the_ledger_and_lag_from_source_offsets() -> None:
    tracker = _tracker()
    tracker.update(_snapshot(("a-0", 100, 80), ("a-1", 0, 0)), 0.0)
    progress = tracker.update(_snapshot(("a-0", 200, 120), ("a-1", 50, 50), size=450), 2.0)
    topic = progress.topics[0]
    assert (topic.records, topic.lag, topic.position) == (90, 150, 250)
    assert topic.fraction == 0.5
    assert topic.records_per_s == 45.0
    assert topic.eta_s == 2.0
    assert (progress.records_per_s, progress.bytes_per_s, progress.lag) == (45.0, 450.0, 150)


def test_each_topic_has_its_own_records_and_bytes_per_second() -> None:
    tracker = _tracker()
    tracker.update(_snapshot(("a-0", 100, 80), ("a-1", 0, 0), ("b-0", 0, 0)), 0.0)
    progress = tracker.update(
        _snapshot(("a-0", 140, 120), ("a-1", 20, 20), ("b-0", 10, 10), size=300), 2.0
    )
    a, b = progress.topics
    assert (a.records, a.bytes, a.records_per_s, a.bytes_per_s) == (60, 600, 30.0, 300.0)
    assert (b.records, b.bytes, b.records_per_s, b.bytes_per_s) == (10, 300, 5.0, 150.0)
    assert (progress.records, progress.bytes, progress.bytes_per_s) == (70, 900, 450.0)


def test_records_that_are_copied_again_count_again() -> None:
    assert _tracker().update(_snapshot(("a-0", 20, 100)), 1.0).records == 20


def test_lag_ends_at_the_end_offset_or_else_at_the_end_of_the_source() -> None:
    at_end = _snapshot(("a-0", 300, 250), ("a-1", 100, 100), end=400)
    assert _tracker().update(at_end, 1.0).topics[0].lag == 0
    assert _tracker(has_end=False).update(at_end, 1.0).topics[0].lag == 400


def test_lag_without_an_end_offset_is_unknown_while_the_end_is_unknown() -> None:
    tracker = _tracker(has_end=False)
    assert tracker.update(CopySnapshot(), 0.0).topics[0].lag == 300, (
        "the ranges have the end offsets"
    )
    known = _snapshot(("a-0", 300, 280), ("a-1", 100, 100), end=300)
    assert tracker.update(known, 1.0).topics[0].lag == 200
    for unknown in (_snapshot(("a-0", 300, 280), ("a-1", 100, 100)), CopySnapshot()):
        progress = tracker.update(unknown, 2.0)
        topic = progress.topics[0]
        assert (topic.lag, topic.fraction, topic.eta_s, progress.lag) == (None, None, None, None)


def test_halted_partition_is_not_done_although_its_position_is_behind_the_end_offset() -> None:
    halted = PartitionView(
        remote="", task=0, state="held", position=500, end=10, reason="recreated", halted=True
    )
    views = {"a-0": halted, **_snapshot(("a-1", 100, 100)).partitions}
    topic = _tracker().update(CopySnapshot(partitions=views), 1.0).topics[0]
    assert (topic.lag, topic.fraction, topic.eta_s) == (None, None, None)


def test_bytes_of_successive_drivers_are_added() -> None:
    tracker = _tracker()
    tracker.update(_snapshot(("a-0", 200, 180), size=1000), 1.0, "first")
    assert tracker.update(_snapshot(("a-0", -1, 0)), 2.0, "second").bytes == 1000
    assert tracker.update(_snapshot(("a-0", 210, 190), size=300), 3.0, "second").bytes == 1300


def test_new_driver_does_not_reset_progress() -> None:
    tracker = _tracker()
    before = tracker.update(_snapshot(("a-0", 200, 180)), 1.0, "first").topics[0]
    after = tracker.update(_snapshot(("a-0", -1, 0)), 2.0, "second").topics[0]
    assert (after.position, after.records, after.lag) == (before.position, 100, before.lag)


def test_rate_excludes_the_start_of_spark() -> None:
    tracker = _tracker()
    tracker.update(_snapshot(("a-0", -1, 0)), 0.0)
    tracker.update(_snapshot(("a-0", 100, 80)), 8.0)
    progress = tracker.update(_snapshot(("a-0", 200, 180)), 9.0)
    assert (progress.elapsed_s, progress.copying_s) == (9.0, 1.0)
    assert progress.records_per_s == progress.topics[0].records_per_s == 100.0


def test_lanes_of_successive_drivers_are_added() -> None:
    tracker = _tracker()
    tracker.update(CopySnapshot(lanes={"a": {"plain": 3, "compacted": 1}}), 1.0, "first")
    progress = tracker.update(CopySnapshot(lanes={"a": {"plain": 2, "control": 1}}), 2.0, "second")
    assert progress.topics[0].lanes == {"plain": 5, "compacted": 1, "control": 1}


def test_held_partitions_have_a_reason() -> None:
    held = PartitionView(remote="", task=0, state="held", reason="no leader")
    waits = PartitionView(remote="", task=0, state="leased", reason="source: refused")
    progress = _tracker().update(CopySnapshot(partitions={"a-0": held, "a-1": waits}), 1.0)
    assert progress.held == (
        BlockedPartition(partition="a-0", reason="no leader", is_halted=False),
        BlockedPartition(partition="a-1", reason="source: refused", is_halted=False),
    )
    assert progress.partitions == 3


def test_topic_with_a_held_partition_has_no_eta() -> None:
    tracker = _tracker()
    tracker.update(_snapshot(("a-0", 100, 50)), 0.0)
    held = PartitionView(remote="", task=0, state="held", position=200, reason="no leader")
    assert tracker.update(CopySnapshot(partitions={"a-0": held}), 1.0).topics[0].eta_s is None


def test_eta_is_that_of_the_slowest_topic() -> None:
    tracker = _tracker()
    tracker.update(_snapshot(("a-0", 100, 50)), 0.0)
    assert tracker.update(_snapshot(("a-0", 100, 50)), 1.0).eta_s is None
    assert tracker.update(_snapshot(("a-0", 250, 50)), 2.0).eta_s == pytest.approx(2.0)


def test_rate_covers_only_its_window() -> None:
    rate = SlidingRate(window_s=10)
    for second in range(100):
        rate.update(0, second)
    assert rate.update(100, 100) == 10.0
    assert [rate.update(100, second) for second in range(101, 112)][-1] == 0.0


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 100)), max_size=20))
def test_cumulative_counter_never_decreases(values: list[tuple[str, int]]) -> None:
    total, latest, shown = CumulativeCounter(), dict[str, int](), [0]
    run = ""
    for name, value in values:
        value = max(value, latest.get(name, 0)) if name == run else value
        latest[name], run = value, name
        shown.append(total.update(value, name))
    assert shown == sorted(shown)
