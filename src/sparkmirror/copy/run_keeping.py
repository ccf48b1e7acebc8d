"""Where each record went, remembered: the exact maps of all partitions outlive the driver.

The checkpoint connector, in another process, translates with them. They are written a little before
positions are (`book`), and say up to which positions they are complete. What comes back after a
crash may end before the position that copying goes on at: then something is missing in between, and
the map says so (`mirror.run_segments`) instead of calling it a hole.

Losing them costs exactness, never records: trouble with keeping is told and otherwise ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from sparkmirror.copy.lease import Lease
from sparkmirror.copy.place import Place
from sparkmirror.errors import MirrorError
from sparkmirror.mirror.run_records import Segment
from sparkmirror.mirror.run_segments import SegmentedRuns
from sparkmirror.model import TopicPartition

log = logging.getLogger(__name__)

Segments = Mapping[int, Segment]


class RunStore(Protocol):
    """Where segments are kept."""

    def load(self) -> dict[TopicPartition, Segments]:
        """All segments of this connector, by source partition."""
        ...

    def save(self, segments: Mapping[tuple[TopicPartition, int], Segment | None]) -> None:
        """Keep these; None removes one."""
        ...

    def close(self) -> None:
        """Let go of what it needs to be reached."""
        ...


class RunKeeper:
    """Keeps the maps of one job. Belongs to the conductor's thread."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._found: dict[TopicPartition, Segments] = {}
        self._complete_to: dict[TopicPartition, tuple[int, int]] = {}
        self._trouble = ""

    def load(self) -> None:
        """Read what was kept."""
        try:
            self._found = self._store.load()
        except MirrorError as error:
            self._tell("read", error)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def restore(self, places: Mapping[TopicPartition, Place]) -> None:
        """Give places that have got their first lease the maps that were kept of them."""
        for partition in list(self._found):
            place = places.get(partition)
            if place and place.lease and not place.is_unopened:
                place.runs = restored(self._found.pop(partition), place.lease)

    def save(self, places: Iterable[Place]) -> None:
        """Write what has changed."""
        segments: dict[tuple[TopicPartition, int], Segment | None] = {}
        written: dict[Place, tuple[int, int]] = {}
        for place in places:
            if place.lease is not None:
                written[place] = (place.lease.position, place.lease.expected)
                segments |= self._changes(place, place.lease)
        if not segments:
            return
        try:
            self._store.save(segments)
        except MirrorError as error:
            self._tell("written", error)
            return
        self._trouble = ""
        for place, complete_to in written.items():
            place.runs.saved()
            self._complete_to[place.source] = complete_to

    def _changes(
        self, place: Place, lease: Lease
    ) -> dict[tuple[TopicPartition, int], Segment | None]:
        if self._complete_to.get(place.source) != (lease.position, lease.expected):
            place.runs.touch()
        segments, removed = place.runs.changes()
        changes: dict[tuple[TopicPartition, int], Segment | None] = {
            (place.source, number): None for number in removed
        }
        for number, runs in segments.items():
            changes[place.source, number] = Segment(
                runs=runs,
                position=lease.position,
                expected=lease.expected,
                target_topic_id=lease.target_topic_id,
            )
        return changes

    def _tell(self, what: str, error: MirrorError) -> None:
        if str(error) != self._trouble:
            log.warning("Maps of what was copied cannot be %s: %s", what, error)
        self._trouble = str(error)


def restored(segments: Segments, lease: Lease) -> SegmentedRuns:
    """Make a map of what was kept, true for whoever goes on with this lease."""
    runs = SegmentedRuns.restored({number: one.runs for number, one in segments.items()})
    latest = segments[max(segments)]
    ids = {latest.target_topic_id, lease.target_topic_id} - {""}
    is_behind = (runs.source_end or 0) > lease.position or (runs.target_end or 0) > lease.expected
    if len(ids) > 1 or is_behind:
        runs.reset()
    elif (latest.position, latest.expected) != (lease.position, lease.expected):
        runs.be_coarse()
    return runs
