"""Stored run maps: complete, or marked as not complete."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sparkmirror.copy.driver.offset_translation_publisher import OffsetTranslationPublisher
from sparkmirror.copy.driver.run_map_store import RunMapCache, RunSegments
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.errors import ClusterUnavailable
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap
from sparkmirror.mirror.offsets.run_map_records import RunMapSegment
from sparkmirror.mirror.offsets.run_map_segments import SegmentedRunMap, combine_segments
from sparkmirror.model import TopicPartition

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
IDENTITY = LeaseIdentity(producer_id=1, producer_epoch=0, anchor=0)


class MemoryStore:
    """Stores segments in memory, and may be down."""

    def __init__(self) -> None:
        self.segments: dict[tuple[TopicPartition, int], RunMapSegment] = {}
        self.writes = self.loads = 0
        self.is_down = False

    def cancel(self) -> None:
        """No-op."""

    def load(self) -> dict[TopicPartition, RunSegments]:
        self._check_up()
        self.loads += 1
        return (
            {SOURCE: {number: one for (_, number), one in self.segments.items()}}
            if self.segments
            else {}
        )

    def save(self, segments: Mapping[tuple[TopicPartition, int], RunMapSegment | None]) -> None:
        self._check_up()
        self.writes += 1
        for key, segment in segments.items():
            if segment is None:
                self.segments.pop(key, None)
            else:
                self.segments[key] = segment

    def close(self) -> None:
        pass

    def map(self) -> RunMap:
        """The map that a reader combines."""
        return combine_segments(self.segments[key].runs for key in sorted(self.segments))

    def _check_up(self) -> None:
        if self.is_down:
            raise ClusterUnavailable("B", "down")


def _tracked_partition(position: int, expected: int, topic_id: str = "") -> TrackedPartition:
    lease = Lease(
        source=SOURCE,
        target=TARGET,
        position=position,
        expected=expected,
        identity=IDENTITY,
        target_topic_id=topic_id,
    )
    return TrackedPartition(SOURCE, TARGET, 0, lease=lease, needs_resume_point=False)


def _stored(topic_id: str = "") -> MemoryStore:
    """The store of a driver that has copied 0..9 and 12..14; its position is 16."""
    store = MemoryStore()
    tracked = _tracked_partition(16, 13, topic_id)
    tracked.add_run(0, 0, 10)
    tracked.add_run(12, 10, 3)
    RunMapCache(store).save([tracked])
    return store


def _restored(store: MemoryStore, tracked: TrackedPartition) -> TrackedPartition:
    cache = RunMapCache(store)
    cache.load()
    cache.restore({SOURCE: tracked})
    return tracked


def test_a_stored_map_is_continued() -> None:
    tracked = _restored(_stored(), _tracked_partition(16, 13))
    tracked.add_run(16, 13, 4)
    assert list(tracked.runs) == [OffsetRun(0, 0, 10), OffsetRun(12, 10, 3), OffsetRun(16, 13, 4)]
    store = MemoryStore()
    RunMapCache(store).save([tracked])
    assert store.map().translate_downstream(15) == 13, "a known gap in the source"


def test_runs_missing_between_the_map_and_the_position_are_no_gap() -> None:
    store = _stored()
    tracked = _restored(store, _tracked_partition(30, 25))
    tracked.add_run(30, 25, 5)
    RunMapCache(store).save([tracked])
    assert store.map().translate_downstream(20) == 13, "too low, never too high"
    assert store.map().translate_downstream(31) == 26


@pytest.mark.parametrize(
    ("position", "expected", "topic_id"), [(5, 13, "x"), (16, 5, "x"), (16, 13, "y")],
    ids=["rewound", "truncated", "recreated"],
)  # fmt: skip
def test_a_map_that_contradicts_the_lease_is_dropped(
    position: int, expected: int, topic_id: str
) -> None:
    store = _stored("x")
    tracked = _restored(store, _tracked_partition(position, expected, topic_id))
    assert list(tracked.runs) == []
    tracked.add_run(position, expected, 1)
    RunMapCache(store).save([tracked])
    assert list(store.map()) == [OffsetRun(position, expected, 1)]


@pytest.mark.parametrize("is_shared", [False, True])
def test_the_map_of_a_remote_topic_with_another_name_is_dropped_also_without_topic_ids(
    is_shared: bool,
) -> None:
    store = _stored()
    tracked, cache = _tracked_partition(16, 13), RunMapCache(store)
    tracked.drops_stored_runs = True
    if is_shared:
        cache.reload([tracked])
    else:
        cache.load()
        cache.restore({SOURCE: tracked})
    tracked.add_run(16, 13, 1)
    cache.save([tracked])
    assert list(store.map()) == [OffsetRun(16, 13, 1)]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_job_that_is_shared_loads_maps_only_when_its_partitions_are_leased(
    is_shared: bool,
) -> None:
    store = MemoryStore()
    OffsetTranslationPublisher(None, RunMapCache(store), is_shared=is_shared).start()
    assert store.loads == (0 if is_shared else 1)


def test_an_unchanged_map_is_not_written() -> None:
    store, tracked = MemoryStore(), _tracked_partition(10, 10)
    tracked.add_run(0, 0, 10)
    cache = RunMapCache(store)
    cache.save([tracked])
    cache.save([tracked])
    assert store.writes == 1
    tracked.advance_to(12, 10, 0)
    cache.save([tracked])
    assert store.writes == 2, "the map is complete up to a later position"


class CountedRunMap(SegmentedRunMap):
    """Counts how often all changes were saved."""

    saves = 0

    def mark_saved(self) -> None:
        self.saves += 1
        super().mark_saved()


def test_a_save_leaves_partitions_without_a_change_alone() -> None:
    store, moved, still = MemoryStore(), _tracked_partition(10, 10), _tracked_partition(10, 10)
    still.source = SOURCE._replace(partition=1)
    maps = moved.runs, still.runs = CountedRunMap(), CountedRunMap()
    for tracked in (moved, still):
        tracked.add_run(0, 0, 10)
    cache = RunMapCache(store)
    cache.save([moved, still])
    moved.advance_to(11, 11, 1)
    moved.add_run(10, 10, 1)
    cache.save([moved, still])
    assert [one.saves for one in maps] == [2, 1]


def test_a_failed_write_is_repeated_and_a_problem_until_it_succeeds() -> None:
    store, tracked = MemoryStore(), _tracked_partition(10, 10)
    tracked.add_run(0, 0, 10)
    cache = RunMapCache(store)
    store.is_down = True
    cache.load()
    cache.save([tracked])
    assert cache.problem() == (
        "run maps cannot be written, so that offset translation is less exact: B: down"
    )
    store.is_down = False
    cache.save([tracked])
    assert cache.problem() == ""
    assert list(store.map()) == [OffsetRun(0, 0, 10)]
