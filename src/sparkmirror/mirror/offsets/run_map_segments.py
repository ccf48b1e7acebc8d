"""A run map in segments, so that keeping it costs little however long it grows.

    segment 4            segment 5            segment 6
    1000 runs, closed    1000 runs, closed    37 runs, open: what is copied now goes here

A segment that is closed never changes, so only the open one is written again and again. Numbers go
up for as long as the partition lives, also when everything known is thrown away: what is read back
in the order of its number is in the order of time.

    A  What follows in a segment follows all before it, on both sides, as in one run map.
    B  Segments that are kept are a stretch without a missing one. The oldest are dropped first, and
       with them the positions they knew.
    C  Where something may be missing all the same, everything before it is coarse (see `runs`): the
       answer there is too low, never too high.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sparkmirror.errors import RunMapConflict
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap

RUNS_PER_SEGMENT = 1000
MAX_SEGMENTS = 100


class RunMapChanges(NamedTuple):
    """What must be written so that everything is kept: whole segments, and those to remove."""

    segments: Mapping[int, RunMap]
    removed: tuple[int, ...]


class SegmentedRunMap:
    """The runs of one partition. What is not saved yet is known until `saved` is called."""

    def __init__(
        self, *, segment_runs: int = RUNS_PER_SEGMENT, most_segments: int = MAX_SEGMENTS
    ) -> None:
        self._runs_per_segment = segment_runs
        self._max_segments = most_segments
        self._segments: dict[int, RunMap] = {}
        self._next_number = 0
        self._dirty: set[int] = set()
        self._removed: set[int] = set()

    @classmethod
    def restore(cls, segments: Mapping[int, RunMap]) -> SegmentedRunMap:
        """Go on with what was kept. What does not fit to what came later is thrown away."""
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
        """Where the last copied record's successor would lie."""
        last = self._last_segment()
        return last.target_end if last else None

    def append(self, source_first: int, target_first: int, length: int) -> None:
        """Add what was copied. A part that is known already, at the same place, is no news."""
        run = self._new_part(OffsetRun(source_first, target_first, length))
        if run.length == 0:
            return
        last = self._last_segment()
        if last is None or (len(last) >= self._runs_per_segment and not _touches(last, run)):
            last = self._open_segment()
        last.append(*run)
        self._dirty.add(self._next_number - 1)

    def reset(self) -> None:
        """Forget everything: what is copied from now on is another story."""
        self._removed |= self._segments.keys()
        self._segments.clear()
        self._dirty.clear()

    def mark_coarse(self) -> None:
        """Something may be missing between what is known and what will be added."""
        for number, segment in self._segments.items():
            if segment.coarse_runs < len(segment):
                self._segments[number] = RunMap.restore(
                    segment, segment.known_from, coarse_runs=len(segment)
                )
                self._dirty.add(number)

    def mark_latest_dirty(self) -> None:
        """Have the latest segment written again: what is said beside it has changed."""
        if self._segments:
            self._dirty.add(self._next_number - 1)

    def unsaved_changes(self) -> RunMapChanges:
        """What is not saved yet."""
        segments = {number: self._segments[number] for number in sorted(self._dirty)}
        return RunMapChanges(segments, tuple(sorted(self._removed)))

    def mark_saved(self) -> None:
        """All changes are kept now."""
        self._dirty.clear()
        self._removed.clear()

    def _last_segment(self) -> RunMap | None:
        return self._segments.get(self._next_number - 1)

    def _new_part(self, run: OffsetRun) -> OffsetRun:
        """Cut off what the map holds already; refuse what contradicts it."""
        last = self._last_segment()
        if last is None or last.source_end is None or last.target_end is None:
            return run
        known = last.source_end - run.source_first
        is_repeat = known > 0 and last.target_end - run.target_first == known
        if is_repeat:
            known = min(known, run.length)
            return OffsetRun(run.source_first + known, run.target_first + known, run.length - known)
        if known > 0 or run.target_first < last.target_end:
            raise RunMapConflict(f"{run} does not follow what was copied before; reset the map")
        return run

    def _open_segment(self) -> RunMap:
        new = self._segments[self._next_number] = RunMap()
        self._next_number += 1
        while len(self._segments) > self._max_segments:
            oldest = next(iter(self._segments))
            del self._segments[oldest]
            self._dirty.discard(oldest)
            self._removed.add(oldest)
        return new


def combine_segments(segments: Iterable[RunMap]) -> RunMap:
    """Make one map of segments that follow one another; what does not fit starts a new one."""
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
    # Runs that touch become one, so the coarse ones may be fewer than they were.
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
