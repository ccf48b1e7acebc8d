"""Where each record went, remembered: the exact maps of all partitions outlive the driver.

The checkpoint connector, in another process, translates with them. They are written a little before
positions are (`book`), and say up to which positions they are complete. What comes back after a
crash may end before the position that copying goes on at: then something is missing in between, and
the map says so (`mirror.offsets.run_map_segments`) instead of calling it a hole.

Losing them costs exactness, never records: trouble with keeping is told and otherwise ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.lease import Lease
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.offsets.run_map_records import RunMapSegment
from sparkmirror.mirror.offsets.run_map_segments import SegmentedRunMap
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)

RunSegments = Mapping[int, RunMapSegment]


class RunMapStore(Protocol):
    """Where segments are kept."""

    def load(self) -> dict[TopicPartition, RunSegments]:
        """All segments of this connector, by source partition."""
        ...

    def save(self, segments: Mapping[tuple[TopicPartition, int], RunMapSegment | None]) -> None:
        """Keep these; None removes one."""
        ...

    def close(self) -> None:
        """Let go of what it needs to be reached."""
        ...


class RunMapCache:
    """Keeps the maps of one job. Belongs to the conductor's thread."""

    def __init__(self, store: RunMapStore) -> None:
        self._store = store
        self._loaded: dict[TopicPartition, RunSegments] = {}
        self._complete_to: dict[TopicPartition, tuple[int, int]] = {}
        self._last_error = ""

    def load(self) -> None:
        """Read what was kept."""
        try:
            self._loaded = self._store.load()
        except MirrorError as error:
            self._log_error("read", error)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def restore(self, places: Mapping[TopicPartition, TrackedPartition]) -> None:
        """Give places that have got their first lease the maps that were kept of them."""
        for partition in list(self._loaded):
            place = places.get(partition)
            if place and place.lease and not place.needs_resume_point:
                place.runs = restore_run_map(self._loaded.pop(partition), place.lease)

    def save(self, places: Iterable[TrackedPartition]) -> None:
        """Write what has changed."""
        segments: dict[tuple[TopicPartition, int], RunMapSegment | None] = {}
        written: dict[TrackedPartition, tuple[int, int]] = {}
        for place in places:
            if place.lease is not None:
                written[place] = (place.lease.position, place.lease.expected)
                segments |= self._changes(place, place.lease)
        if not segments:
            return
        try:
            self._store.save(segments)
        except MirrorError as error:
            self._log_error("written", error)
            return
        self._last_error = ""
        for place, complete_to in written.items():
            place.runs.mark_saved()
            self._complete_to[place.source] = complete_to

    def _changes(
        self, place: TrackedPartition, lease: Lease
    ) -> dict[tuple[TopicPartition, int], RunMapSegment | None]:
        if self._complete_to.get(place.source) != (lease.position, lease.expected):
            place.runs.mark_latest_dirty()
        segments, removed = place.runs.unsaved_changes()
        changes: dict[tuple[TopicPartition, int], RunMapSegment | None] = {
            (place.source, number): None for number in removed
        }
        for number, runs in segments.items():
            changes[place.source, number] = RunMapSegment(
                runs=runs,
                source_position=lease.position,
                next_target_offset=lease.expected,
                target_topic_id=lease.target_topic_id,
            )
        return changes

    def _log_error(self, what: str, error: MirrorError) -> None:
        if str(error) != self._last_error:
            log.warning("Maps of what was copied cannot be %s: %s", what, error)
        self._last_error = str(error)


def restore_run_map(segments: RunSegments, lease: Lease) -> SegmentedRunMap:
    """Make a map of what was kept, true for whoever goes on with this lease."""
    runs = SegmentedRunMap.restore({number: one.runs for number, one in segments.items()})
    latest = segments[max(segments)]
    ids = {latest.target_topic_id, lease.target_topic_id} - {""}
    is_behind = (runs.source_end or 0) > lease.position or (runs.target_end or 0) > lease.expected
    if len(ids) > 1 or is_behind:
        runs.reset()
    elif (latest.source_position, latest.next_target_offset) != (lease.position, lease.expected):
        runs.mark_coarse()
    return runs
