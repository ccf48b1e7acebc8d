"""A run map in segments, so that the cost of saving it does not grow with its length.

    segment 4            segment 5            segment 6
    1000 runs, closed    1000 runs, closed    37 runs, open: new runs are added here

A closed segment does not change, so only the open one is written again. Segment numbers only
increase, also after `reset`, so the order of numbers is the order of time.

    A  The runs of a segment follow all runs before it, on both sides, as in one run map.
    B  No segment is missing between two kept ones. The oldest are dropped first; their positions
       are not translated any more.
    C  If runs may be missing at a point, all runs before it are coarse (see `run_map`): the result
       there is too low, never too high.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sparkmirror.errors import RunMapConflict
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap

RUNS_PER_SEGMENT = 1000
MAX_SEGMENTS = 100


class RunMapChanges(NamedTuple):
    """The segments to write, and the numbers of the segments to delete."""

    segments: Mapping[int, RunMap]
    removed: tuple[int, ...]


class SegmentedRunMap:
    """The runs of one partition. Changes are tracked until `mark_saved`."""

    def __init__(
        self, *, runs_per_segment: int = RUNS_PER_SEGMENT, max_segments: int = MAX_SEGMENTS
    ) -> None:
        self._runs_per_segment = runs_per_segment
        self._max_segments = max_segments
        self._segments: dict[int, RunMap] = {}
        self._next_number = 0
        self._dirty: set[int] = set()
        self._removed: set[int] = set()

    @classmethod
    def restore(cls, segments: Mapping[int, RunMap]) -> SegmentedRunMap:
        """Return a map with saved segments. Segments that do not fit to a later one are deleted."""
        restored = cls()
        for number in sorted(segments):
            if not _follows(restored._segments.values(), segments[number]):
                restored.reset()
            restored._segments[number] = segments[number]
            restored._next_number = number + 1
        return restored

    def __len__(self) -> int:
        return sum(len(segment) for segment in self._segments.values())

    def __iter__(self) -> Iterator[OffsetRun]:
        return (run for segment in self._segments.values() for run in segment)

    @property
    def source_end(self) -> int | None:
        """The position after the last copied record."""
        last = self._last_segment()
        return last.source_end if last else None

    @property
    def target_end(self) -> int | None:
        """The downstream offset after the last copied record."""
        last = self._last_segment()
        return last.target_end if last else None

    def append(self, source_first: int, target_first: int, length: int) -> None:
        """Add copied records. Records that the map has already, at the same offsets, are skipped.

        Raises RunMapConflict.
        """
        run = self._new_part(OffsetRun(source_first, target_first, length))
        if run.length == 0:
            return
        last = self._last_segment()
        if last is None or (len(last) >= self._runs_per_segment and not _touches(last, run)):
            last = self._open_segment()
        last.append(*run)
        self._dirty.add(self._next_number - 1)

    def reset(self) -> None:
        """Delete all segments."""
        self._removed |= self._segments.keys()
        self._segments.clear()
        self._dirty.clear()

    def mark_coarse(self) -> None:
        """Mark all runs as coarse: runs may be missing between them and the next one."""
        for number, segment in self._segments.items():
            if segment.coarse_runs < len(segment):
                self._segments[number] = RunMap.restore(
                    segment, segment.known_from, coarse_runs=len(segment)
                )
                self._dirty.add(number)

    def mark_latest_dirty(self) -> None:
        """Mark the latest segment as changed, because the positions of its record have changed."""
        if self._segments:
            self._dirty.add(self._next_number - 1)

    def unsaved_changes(self) -> RunMapChanges:
        """Return the changes since `mark_saved`."""
        segments = {number: self._segments[number] for number in sorted(self._dirty)}
        return RunMapChanges(segments, tuple(sorted(self._removed)))

    def mark_saved(self) -> None:
        """Report that all changes were saved."""
        self._dirty.clear()
        self._removed.clear()

    def _last_segment(self) -> RunMap | None:
        return self._segments.get(self._next_number - 1)

    def _new_part(self, run: OffsetRun) -> OffsetRun:
        """Return the part of a run that the map does not have. Raises RunMapConflict."""
        last = self._last_segment()
        if last is None or last.source_end is None or last.target_end is None:
            return run
        known = last.source_end - run.source_first
        is_repeat = known > 0 and last.target_end - run.target_first == known
        if is_repeat:
            known = min(known, run.length)
            return OffsetRun(run.source_first + known, run.target_first + known, run.length - known)
        if known > 0 or run.target_first < last.target_end:
            raise RunMapConflict(f"{run} does not follow the runs before it; reset the map")
        return run

    def _open_segment(self) -> RunMap:
        opened = self._segments[self._next_number] = RunMap()
        self._next_number += 1
        while len(self._segments) > self._max_segments:
            oldest = next(iter(self._segments))
            del self._segments[oldest]
            self._dirty.discard(oldest)
            self._removed.add(oldest)
        return opened


def combine_segments(segments: Iterable[RunMap]) -> RunMap:
    """Return one map of consecutive segments. A segment that does not follow starts a new map."""
    runs: list[OffsetRun] = []
    known_from: int | None = None
    coarse = 0
    before: list[RunMap] = []
    for segment in segments:
        if not _follows(before, segment):
            runs, known_from, coarse = [], None, 0
        if not runs:
            known_from = segment.known_from
        if segment.coarse_runs:
            coarse = len(runs) + segment.coarse_runs
        runs += segment
        before = [segment]
    # Runs that touch are joined, so there may be fewer coarse runs than before.
    still_coarse = len(RunMap.restore(runs[:coarse], known_from, 0))
    return RunMap.restore(runs, known_from, still_coarse)


def _follows(before: Iterable[RunMap], segment: RunMap) -> bool:
    ends = [(m.source_end, m.target_end) for m in before if m.source_end is not None]
    first = next(iter(segment), None)
    if not ends or first is None:
        return True
    source_end, target_end = ends[-1]
    assert source_end is not None
    assert target_end is not None
    return first.source_first >= source_end and first.target_first >= target_end


def _touches(last: RunMap, run: OffsetRun) -> bool:
    return (last.source_end, last.target_end) == (run.source_first, run.target_first)
