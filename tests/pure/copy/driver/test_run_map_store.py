"""Maps that outlive the driver: complete, or known not to be."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sparkmirror.copy.driver.run_map_store import RunMapCache, RunSegments
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.errors import ClusterUnavailable
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap
from sparkmirror.mirror.offsets.run_map_records import RunMapSegment
from sparkmirror.mirror.offsets.run_map_segments import combine_segments
from sparkmirror.model import TopicPartition

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
WHO = LeaseIdentity(producer_id=1, producer_epoch=0, anchor=0)


class MemoryStore:
    """A store that keeps segments in memory, and may be out of order."""

    def __init__(self) -> None:
        self.kept: dict[tuple[TopicPartition, int], RunMapSegment] = {}
        self.writes = 0
        self.is_down = False

    def load(self) -> dict[TopicPartition, RunSegments]:
        self._demand()
        return (
            {SOURCE: {number: one for (_, number), one in self.kept.items()}} if self.kept else {}
        )

    def save(self, segments: Mapping[tuple[TopicPartition, int], RunMapSegment | None]) -> None:
        self._demand()
        self.writes += 1
        for key, segment in segments.items():
            if segment is None:
                self.kept.pop(key, None)
            else:
                self.kept[key] = segment

    def close(self) -> None:
        pass

    def map(self) -> RunMap:
        """What a reader makes of it."""
        return combine_segments(self.kept[key].runs for key in sorted(self.kept))

    def _demand(self) -> None:
        if self.is_down:
            raise ClusterUnavailable("B", "down")


def _place(position: int, expected: int, topic_id: str = "") -> TrackedPartition:
    lease = Lease(
        source=SOURCE,
        target=TARGET,
        position=position,
        expected=expected,
        identity=WHO,
        target_topic_id=topic_id,
    )
    return TrackedPartition(SOURCE, TARGET, 0, lease=lease, needs_resume_point=False)


def _kept(topic_id: str = "") -> MemoryStore:
    """What a driver leaves behind that has copied 0..9 and 12..14, and stands at 16."""
    store = MemoryStore()
    place = _place(16, 13, topic_id)
    place.add_run(0, 0, 10)
    place.add_run(12, 10, 3)
    RunMapCache(store).save([place])
    return store


def _restored(store: MemoryStore, place: TrackedPartition) -> TrackedPartition:
    keeper = RunMapCache(store)
    keeper.load()
    keeper.restore({SOURCE: place})
    return place


def test_what_was_kept_is_gone_on_with() -> None:
    place = _restored(_kept(), _place(16, 13))
    place.add_run(16, 13, 4)
    assert list(place.runs) == [OffsetRun(0, 0, 10), OffsetRun(12, 10, 3), OffsetRun(16, 13, 4)]
    store = MemoryStore()
    RunMapCache(store).save([place])
    assert store.map().translate_downstream(15) == 13, "a hole that is known to be one"


def test_what_lies_between_the_map_and_the_position_is_no_hole() -> None:
    store = _kept()
    place = _restored(store, _place(30, 25))
    place.add_run(30, 25, 5)
    RunMapCache(store).save([place])
    assert store.map().translate_downstream(20) == 13, "too low, never too high"
    assert store.map().translate_downstream(31) == 26


@pytest.mark.parametrize(
    ("position", "expected", "topic_id"), [(5, 13, "x"), (16, 5, "x"), (16, 13, "y")],
    ids=["rewound", "truncated", "recreated"],
)  # fmt: skip
def test_a_map_that_does_not_fit_any_more_is_thrown_away(
    position: int, expected: int, topic_id: str
) -> None:
    store = _kept("x")
    place = _restored(store, _place(position, expected, topic_id))
    assert list(place.runs) == []
    place.add_run(position, expected, 1)
    RunMapCache(store).save([place])
    assert list(store.map()) == [OffsetRun(position, expected, 1)]


def test_nothing_is_written_while_nothing_moves() -> None:
    store, place = MemoryStore(), _place(10, 10)
    place.add_run(0, 0, 10)
    keeper = RunMapCache(store)
    keeper.save([place])
    keeper.save([place])
    assert store.writes == 1
    place.advance_to(12, 10, 0)
    keeper.save([place])
    assert store.writes == 2, "the map is complete up to a later position"


def test_trouble_with_keeping_loses_nothing() -> None:
    store, place = MemoryStore(), _place(10, 10)
    place.add_run(0, 0, 10)
    keeper = RunMapCache(store)
    store.is_down = True
    keeper.load()
    keeper.save([place])
    store.is_down = False
    keeper.save([place])
    assert list(store.map()) == [OffsetRun(0, 0, 10)]
