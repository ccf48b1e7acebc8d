"""Stores run maps, so that the exact offset maps of all partitions survive the driver.

The checkpoint connector, in another process, translates offsets with them. They are written before
the ledger (`ledger_cache`) and say up to which positions they are complete. A map loaded after a
crash may end before the position at which copying resumes. Then runs are missing in between, and
the map is marked coarse there (`mirror.offsets.run_map_segments`): the gap is no gap in the source.

Losing maps makes translation less exact and loses no record: an error of the store is logged, and
`problem` returns it until a map is stored. Copying goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
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
    """Stores segments of run maps."""

    def load(self) -> dict[TopicPartition, RunSegments]:
        """Return all segments of this connector by source partition."""
        ...

    def save(self, segments: Mapping[tuple[TopicPartition, int], RunMapSegment | None]) -> None:
        """Store segments; None deletes one."""
        ...

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled. Any thread may call this."""
        ...

    def close(self) -> None:
        """Close its connections."""
        ...


class RunMapCache:
    """The run maps of one job and their store. Belongs to the conductor's thread."""

    def __init__(self, store: RunMapStore) -> None:
        self._store = store
        self._loaded: dict[TopicPartition, RunSegments] = {}
        self._complete_to: dict[TopicPartition, tuple[int, int]] = {}
        self._problem = ""

    def load(self) -> None:
        """Read the stored maps."""
        try:
            self._loaded = self._store.load()
        except MirrorError as error:
            self._set_problem("read", error)

    def problem(self) -> str:
        """Return why maps cannot be read or written now; empty if they can."""
        return self._problem

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled. Any thread may call this."""
        self._store.cancel()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def restore(self, partitions: Mapping[TopicPartition, TrackedPartition]) -> None:
        """Give partitions that have got their first lease their stored maps."""
        for partition in list(self._loaded):
            tracked = partitions.get(partition)
            if tracked and tracked.lease and not tracked.needs_resume_point:
                _restore(tracked, self._loaded.pop(partition), tracked.lease)

    def reload(self, partitions: Collection[TrackedPartition]) -> None:
        """Give partitions that another conductor may have had the maps that are stored now."""
        self.load()
        for tracked in partitions:
            assert tracked.lease is not None
            tracked.needs_run_map = False
            if segments := self._loaded.get(tracked.source):
                _restore(tracked, segments, tracked.lease)
                self._complete_to.pop(tracked.source, None)
        self._loaded = {}

    def save(self, partitions: Iterable[TrackedPartition]) -> None:
        """Write the segments that have changed."""
        segments: dict[tuple[TopicPartition, int], RunMapSegment | None] = {}
        written: dict[TrackedPartition, tuple[int, int]] = {}
        for tracked in partitions:
            if tracked.lease and (changes := self._changes(tracked, tracked.lease)):
                written[tracked] = (tracked.lease.position, tracked.lease.expected)
                segments |= changes
        if not segments:
            return
        try:
            self._store.save(segments)
        except MirrorError as error:
            self._set_problem("written", error)
            return
        self._problem = ""
        for tracked, complete_to in written.items():
            tracked.runs.mark_saved()
            self._complete_to[tracked.source] = complete_to

    def _changes(
        self, tracked: TrackedPartition, lease: Lease
    ) -> dict[tuple[TopicPartition, int], RunMapSegment | None]:
        if self._complete_to.get(tracked.source) != (lease.position, lease.expected):
            tracked.runs.mark_latest_dirty()
        segments, removed = tracked.runs.unsaved_changes()
        if not segments and not removed:
            return {}
        changes: dict[tuple[TopicPartition, int], RunMapSegment | None] = {
            (tracked.source, number): None for number in removed
        }
        for number, runs in segments.items():
            changes[tracked.source, number] = RunMapSegment(
                runs=runs,
                source_position=lease.position,
                next_target_offset=lease.expected,
                target_topic_id=lease.target_topic_id,
            )
        return changes

    def _set_problem(self, action: str, error: MirrorError) -> None:
        text = f"run maps cannot be {action}, so that offset translation is less exact: {error}"
        if text != self._problem:
            log.warning("%s", text)
        self._problem = text


def _restore(tracked: TrackedPartition, segments: RunSegments, lease: Lease) -> None:
    """Give a partition its stored map, or an empty one that replaces the map of another topic."""
    tracked.runs = restore_run_map(segments, lease)
    if tracked.drops_stored_runs:
        tracked.runs.reset()
        tracked.drops_stored_runs = False


def restore_run_map(segments: RunSegments, lease: Lease) -> SegmentedRunMap:
    """Make a map of stored segments that is true for copying that resumes with this lease."""
    runs = SegmentedRunMap.restore({number: segment.runs for number, segment in segments.items()})
    latest = segments[max(segments)]
    ids = {latest.target_topic_id, lease.target_topic_id} - {""}
    is_behind = (runs.source_end or 0) > lease.position or (runs.target_end or 0) > lease.expected
    if len(ids) > 1 or is_behind:
        runs.reset()
    elif (latest.source_position, latest.next_target_offset) != (lease.position, lease.expected):
        runs.mark_coarse()
    return runs
