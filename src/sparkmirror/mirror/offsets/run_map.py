"""Run maps: the exact downstream offset of each copied upstream offset.

A run is a sequence of records copied without a gap on either side: `length` records from
`source_first` on are at `target_first` and following. A gap starts a new run: compaction,
transaction markers and aborted transactions upstream; markers and fences downstream. A topic
without gaps is one run.

    upstream     10 11 12 13 14  .  .  17 18  .  20 21          . no record
                 └── run 1 ───┘        └ 2 ┘     └ 3 ┘
    downstream   70 71 72 73 74        75 76  m  78 79          m marker or fence

    runs         (10, 70, 5)  (17, 75, 2)  (20, 78, 2)

The map translates *positions*, as consumers commit them: the next offset to read. A consumer at
position p has read all records below p, so it continues at the first copied record at or after p:

    p            9     10    14    15    16    17    19    20    22    99
    downstream   None  70    74    75    75    75    78    78    80    80
                 │                 └─ in a gap: the next record        └─ not copied yet: the end
                 └─ before `known_from`: too old, not translated

The result is never too high: every copied record at or after p is at or after the result. Where the
map is not exact, the result is too low.

    A  Runs ascend on both sides and do not overlap. Two runs that touch on both sides are one.
    B  Gaps between runs have no copied record. Exception: after each of the first `coarse_runs`
       runs, runs may be missing. There the result is the end of the run before, so a consumer reads
       some records twice but skips none.
    C  Positions below `known_from` are not translated.

Where gaps are very many, a run may stand for several (`joined_runs`): there too the result is not
too high.

`append` refuses a run that contradicts the map with RunMapConflict.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sparkmirror.errors import RunMapConflict

MAX_OFFSET = 2**63 - 1


class OffsetRun(NamedTuple):
    """`length` records from `source_first` on are at `target_first` and following."""

    source_first: int
    target_first: int
    length: int


class RunMap:
    """The runs of one partition, in order. The module describes its results."""

    __slots__ = ("_coarse", "_known_from", "_lengths", "_sources", "_targets")

    def __init__(self, known_from: int | None = None) -> None:
        """An empty map. `known_from` is the position at which copying starts, if known."""
        self._sources = array("q")
        self._targets = array("q")
        self._lengths = array("q")
        self._known_from = known_from
        self._coarse = 0

    @classmethod
    def restore(cls, runs: Iterable[OffsetRun], known_from: int | None, coarse_runs: int) -> RunMap:
        """Return a map with these runs and properties. Raises RunMapConflict."""
        restored = cls()
        for run in runs:
            restored.append(*run)
        if restored._sources and known_from is None:
            raise RunMapConflict("A map with runs needs known_from")
        if not 0 <= coarse_runs <= len(restored):
            raise RunMapConflict(f"{coarse_runs} of {len(restored)} runs cannot be coarse")
        restored._known_from = known_from
        restored._coarse = coarse_runs
        return restored

    # -- reading ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._sources)

    def __iter__(self) -> Iterator[OffsetRun]:
        return map(OffsetRun, self._sources, self._targets, self._lengths)

    @property
    def known_from(self) -> int | None:
        """The lowest position that is translated; None if the map is empty."""
        return self._known_from

    @property
    def coarse_runs(self) -> int:
        """The number of oldest runs after each of which other runs may be missing."""
        return self._coarse

    @property
    def source_end(self) -> int | None:
        """The position after the last copied record."""
        return self._sources[-1] + self._lengths[-1] if self._sources else None

    @property
    def target_end(self) -> int | None:
        """The downstream offset after the last copied record; a marker may be there."""
        return self._targets[-1] + self._lengths[-1] if self._sources else None

    def translate_downstream(self, upstream: int) -> int | None:
        """Translate a position of the source partition. None: too old, or the map is empty."""
        known_from = self._known_from
        if known_from is None or upstream < known_from or not self._sources:
            return None
        index = bisect_right(self._sources, upstream) - 1
        if index < 0:
            return self._targets[0]
        distance = upstream - self._sources[index]
        if distance < self._lengths[index]:
            return self._targets[index] + distance
        return self._downstream_after(index)

    def _downstream_after(self, index: int) -> int:
        """Translate a position after run `index` and before the next run."""
        if self._answers_end_after(index):
            return self._targets[index] + self._lengths[index]
        return self._targets[index + 1]

    def _answers_end_after(self, index: int) -> bool:
        """Whether a position after run `index` is translated to that run's end."""
        return index < self._coarse or index + 1 == len(self._sources)

    # -- appending -------------------------------------------------------------------------

    def append(self, source_first: int, target_first: int, length: int) -> None:
        """Add copied records, after all runs of the map on both sides. Raises RunMapConflict."""
        if length <= 0 or max(source_first, target_first) > MAX_OFFSET - length:
            raise RunMapConflict(f"{OffsetRun(source_first, target_first, length)} is not a run")
        if not self._sources:
            self._check_first_run(source_first, target_first)
        else:
            source_gap = source_first - self._sources[-1] - self._lengths[-1]
            target_gap = target_first - self._targets[-1] - self._lengths[-1]
            if source_gap < 0 or target_gap < 0:
                raise RunMapConflict(
                    f"{OffsetRun(source_first, target_first, length)} does not follow"
                    f" {self._last_run()}: reset the map first"
                )
            if source_gap == 0 and target_gap == 0:
                self._lengths[-1] += length
                return
        self._sources.append(source_first)
        self._targets.append(target_first)
        self._lengths.append(length)

    def _check_first_run(self, source_first: int, target_first: int) -> None:
        known_from = source_first if self._known_from is None else self._known_from
        if min(source_first, target_first) < 0 or source_first < known_from:
            raise RunMapConflict(
                f"A first run at {source_first}, {target_first} lies before {known_from}"
            )
        self._known_from = known_from

    def _last_run(self) -> OffsetRun:
        return OffsetRun(self._sources[-1], self._targets[-1], self._lengths[-1])
