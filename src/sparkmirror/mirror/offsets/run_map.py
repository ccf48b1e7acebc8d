"""Run maps: exactly which upstream offset lies at which downstream offset.

A run is a stretch of records copied without a hole on either side: `length` records from
`source_first` on lie, in order, from `target_first` on. Holes begin a new run: compaction, markers
and aborted transactions upstream; markers and fences downstream. A topic without holes is one run
for its whole life.

    upstream     10 11 12 13 14  .  .  17 18  .  20 21          . no record
                 └── run 1 ───┘        └ 2 ┘     └ 3 ┘
    downstream   70 71 72 73 74        75 76  m  78 79          m marker or fence

    runs         (10, 70, 5)  (17, 75, 2)  (20, 78, 2)

What is looked up are *positions*, as consumers commit them: the next offset to read. A consumer
at p has read everything below p, so it goes on at the first copied record at or after p:

    p            9     10    14    15    16    17    19    20    22    99
    downstream   None  70    74    75    75    75    78    78    80    80
                 │                 └─ in a hole: the next record       └─ not copied yet: the end
                 └─ before what the map knows: too old, not translated

Never ahead of the truth: every copied record at or after p lies at or after the answer. In the
other direction the same holds. What the map no longer knows precisely it answers too low.

    A  Runs ascend on both sides and do not overlap; two runs that touch on both sides are one.
    B  Between runs, holes are real: there is no copied record in them. Except after the first
       `coarse_runs` runs, where runs may have been dropped; there the answer is the end of the
       run before, which sends a consumer back, never ahead.
    C  Positions below `known_from` are not answered.

Appending, looking up and bounding are all that ordinary life needs. What contradicts the map is
refused with RunConflict; `append_again`, `truncate_downstream` and `reset` are for those who know
why.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sparkmirror.errors import RunMapConflict

MAX_OFFSET = 2**63 - 1
MIN_RUNS = 2
NEARBY_RUNS = 64  # how far ahead the next of many sorted positions is looked for first


class OffsetRun(NamedTuple):
    """`length` records from `source_first` on lie from `target_first` on."""

    source_first: int
    target_first: int
    length: int


class RunMap:
    """The runs of one partition, in order. See the module for what its answers mean."""

    __slots__ = ("_coarse", "_known_from", "_lengths", "_sources", "_targets")

    def __init__(self, known_from: int | None = None) -> None:
        """Begin with nothing copied; `known_from` is where copying starts, if that is known."""
        self._sources = array("q")
        self._targets = array("q")
        self._lengths = array("q")
        self._known_from = known_from
        self._coarse = 0

    @classmethod
    def restore(cls, runs: Iterable[OffsetRun], known_from: int | None, coarse_runs: int) -> RunMap:
        """Build a map out of what another one said of itself."""
        restored = cls()
        for run in runs:
            restored.append(*run)
        if restored._sources and known_from is None:
            raise RunMapConflict("A map with runs must say from where on it knows them")
        if not 0 <= coarse_runs <= len(restored):
            raise RunMapConflict(f"{coarse_runs} of {len(restored)} runs cannot be coarse")
        restored._known_from = known_from
        restored._coarse = coarse_runs
        return restored

    # -- what it knows ---------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._sources)

    def __iter__(self) -> Iterator[OffsetRun]:
        return map(OffsetRun, self._sources, self._targets, self._lengths)

    @property
    def known_from(self) -> int | None:
        """The lowest position that is answered; None while nothing is known."""
        return self._known_from

    @property
    def coarse_runs(self) -> int:
        """After how many of the oldest runs other runs may be missing."""
        return self._coarse

    @property
    def source_end(self) -> int | None:
        """The position after the last copied record."""
        return self._sources[-1] + self._lengths[-1] if self._sources else None

    @property
    def target_end(self) -> int | None:
        """Where the last copied record's successor would lie; markers may already lie there."""
        return self._targets[-1] + self._lengths[-1] if self._sources else None

    def translate_downstream(self, upstream: int) -> int | None:
        """Translate a position in the source partition; None if it is too old, or nothing known."""
        known_from = self._known_from
        if known_from is None or upstream < known_from or not self._sources:
            return None
        index = bisect_right(self._sources, upstream) - 1
        if index < 0:
            return self._targets[0]
        into = upstream - self._sources[index]
        if into < self._lengths[index]:
            return self._targets[index] + into
        return self._downstream_after(index)

    def translate_downstream_many(self, upstreams: Iterable[int]) -> list[int | None]:
        """Translate many positions at once; quickest if they are sorted, or lie close together."""
        sources, targets, lengths = self._sources, self._targets, self._lengths
        last = len(sources) - 1
        if self._known_from is None or last < 0:
            return [None for _ in upstreams]
        first = max(self._known_from, sources[0])
        answers: list[int | None] = []
        index, low, high = 0, 0, -1  # the run found last begins at low, the next one at high
        for upstream in upstreams:
            if upstream < first:
                answers.append(self.translate_downstream(upstream))
                continue
            if not low <= upstream < high:
                near = index + NEARBY_RUNS
                if low <= upstream and near < last and upstream < sources[near]:
                    index = bisect_right(sources, upstream, index, near) - 1
                else:
                    index = bisect_right(sources, upstream) - 1
                low = sources[index]
                high = sources[index + 1] if index < last else MAX_OFFSET
            into = upstream - low
            found = (
                targets[index] + into if into < lengths[index] else self._downstream_after(index)
            )
            answers.append(found)
        return answers

    def _downstream_after(self, index: int) -> int:
        """Where a position behind run `index`, but before the next, leads."""
        if self._answers_end_after(index):
            return self._targets[index] + self._lengths[index]
        return self._targets[index + 1]

    def translate_upstream(self, downstream: int) -> int | None:
        """Translate a position in the target partition back; None if it is too old."""
        index = bisect_right(self._targets, downstream) - 1
        if index < 0:
            return None
        into = downstream - self._targets[index]
        length = self._lengths[index]
        if into < length or self._answers_end_after(index):
            found = self._sources[index] + min(into, length)
        else:
            found = self._sources[index + 1]
        return None if self._known_from is None or found < self._known_from else found

    def _answers_end_after(self, index: int) -> bool:
        """Whether a position behind run `index` is answered by that run's end."""
        return index < self._coarse or index + 1 == len(self._sources)

    # -- ordinary life ---------------------------------------------------------------------

    def append(self, source_first: int, target_first: int, length: int) -> None:
        """Add what was just copied. It must lie behind everything the map holds, on both sides."""
        if length <= 0 or max(source_first, target_first) > MAX_OFFSET - length:
            raise RunMapConflict(f"{OffsetRun(source_first, target_first, length)} is not a run")
        if not self._sources:
            self._check_first_run(source_first, target_first)
        else:
            source_hole = source_first - self._sources[-1] - self._lengths[-1]
            target_hole = target_first - self._targets[-1] - self._lengths[-1]
            if source_hole < 0 or target_hole < 0:
                raise RunMapConflict(
                    f"{OffsetRun(source_first, target_first, length)} does not follow"
                    f" {self._last_run()}: "
                    "append it again, or truncate or reset the map first"
                )
            if source_hole == 0 and target_hole == 0:
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

    def limit_runs(self, max_runs: int) -> None:
        """Hold at most `max_runs` runs, by dropping runs among the oldest half.

        The newest half stays exact. Of the older runs every second, fourth, ... stays, so what was
        thinned often is the oldest. Enough is dropped to make calling this after each append
        cheap on average. The first run is never dropped: no position becomes too old by this.
        """
        if max_runs < MIN_RUNS:
            raise ValueError(f"A run map needs room for {MIN_RUNS} runs, not {max_runs}")
        if len(self) <= max_runs:
            return
        exact = max_runs // 2
        older = len(self) - exact
        room = max(1, (max_runs - exact) // 2)
        stride = 2
        while -(-older // stride) > room:
            stride *= 2
        self._sources = self._sources[0:older:stride] + self._sources[older:]
        self._targets = self._targets[0:older:stride] + self._targets[older:]
        self._lengths = self._lengths[0:older:stride] + self._lengths[older:]
        self._coarse = -(-older // stride) + max(0, self._coarse - older)

    def drop_before(self, log_start: int) -> None:
        """The source's log now begins at `log_start`: older positions are too old from now on."""
        if self._known_from is None or log_start <= self._known_from:
            return
        self._known_from = log_start
        index = bisect_right(self._sources, log_start) - 1
        if index < 0:
            return
        behind = log_start >= self._sources[index] + self._lengths[index]
        gone = index + 1 if behind and not self._answers_end_after(index) else index
        for column in (self._sources, self._targets, self._lengths):
            del column[:gone]
        self._coarse = max(0, self._coarse - gone)

    # -- when the world was changed --------------------------------------------------------

    def append_overlapping(self, source_first: int, target_first: int, length: int) -> None:
        """Add what was copied although the map reaches further: copying resumed before its end.

        The first copies stay what the map tells of, only what goes beyond them is added. Telling
        of the later copies would skip records that compaction removed before they were copied
        again.
        """
        known = 0 if self.source_end is None else max(0, self.source_end - source_first)
        if known < length:
            self.append(source_first + known, target_first + known, length - known)

    def truncate_downstream(self, target_end: int) -> int | None:
        """The target's log now ends at `target_end`: forget what lay behind.

        Return the source position to copy from. None means that the map did not reach that far
        back and was reset.
        """
        keep = bisect_left(self._targets, target_end)
        if not keep:
            self.reset()
            return None
        for column in (self._sources, self._targets, self._lengths):
            del column[keep:]
        kept = target_end - self._targets[-1]
        was_cut = kept < self._lengths[-1]
        if was_cut:
            self._lengths[-1] = kept
        self._coarse = min(self._coarse, keep - 1 if was_cut else keep)
        return self.source_end

    def reset(self) -> None:
        """Forget everything: the source topic was recreated, or the copy begins anew.

        What the map promises, it promises of the records copied from now on.
        """
        for column in (self._sources, self._targets, self._lengths):
            del column[:]
        self._known_from = None
        self._coarse = 0
