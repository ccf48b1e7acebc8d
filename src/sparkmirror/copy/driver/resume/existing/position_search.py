"""Searches the position of a remote partition that holds records: where does the source go on?

`search_position` is a generator. It yields reads (`ReadTarget`, `ReadSource`, `SourceOffsetAtTime`)
and gets a `LogPart` or an offset for each, so that one thread searches many partitions at once and
sends their reads together. It connects to nothing and is tested with logs in memory.

    1. window   the last records of the remote partition
    2. sync     an offset sync predicts the source offset of the last record
    3. offset   so does its own offset: a mirror that began at offset 0 keeps the numbers
    4. time     the source offset at the record's timestamp; searched from there on. If the last
                record is not found, earlier ones are tried

A prediction counts if the records there are equal (`alignment`). If the window decides nothing, the
search begins again with a larger one.
"""

from __future__ import annotations

import enum
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.driver.resume.existing.alignment import (
    Alignment,
    AlignmentRules,
    AmbiguousAlignment,
    align,
)
from sparkmirror.copy.driver.resume.existing.log_part import LoggedRecord, LogPart
from sparkmirror.mirror.offsets.records import OffsetSync

WINDOWS = (256, 2048)
"""Records of the remote partition that are compared; more if the first ones decide nothing."""
WINDOW_READS = 8
"""Reads that extend a window: large records make it shorter."""
MAX_READS = 64
"""Reads in search of the first record of a window, and for a part of the source."""
CONTEXT = 16
"""Records read around those that are compared."""
PARTS_AFTER_TIME = 8
"""Reads at the source from a timestamp on: out-of-order timestamps lie behind it."""
SAFE_MS = 60_000
"""A source that is so much later than a record no longer holds it."""
SAMPLES = (0, 1, 3, 15, 63, 255)
"""Which window records are searched by time, counted from the last."""
RECORDS_AROUND_TIME = 4096
"""Source records searched around an append time, which does not tell the producer's time."""


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """Read the remote partition from an offset on."""

    offset: int


@dataclass(frozen=True, slots=True)
class ReadSource:
    """Read the source partition from an offset on."""

    offset: int


@dataclass(frozen=True, slots=True)
class SourceOffsetAtTime:
    """List the first source offset at or after a time; -1 if there is none."""

    timestamp_ms: int


SearchRead: TypeAlias = ReadTarget | ReadSource | SourceOffsetAtTime
SearchAnswer: TypeAlias = LogPart | int


class Finding(enum.Enum):
    """What the search has found."""

    FOUND = enum.auto()
    """The last copied record is known."""
    NO_RECORDS = enum.auto()
    """The remote partition holds markers only."""
    SOURCE_LATER = enum.auto()
    """The source begins after the last record of the remote partition."""
    FOREIGN = enum.auto()
    """The source holds the time of the records, and not the records."""
    AMBIGUOUS = enum.auto()
    """Several source records are equal to the last one."""
    UNKNOWN = enum.auto()
    """The source is compacted, or too large to search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """A finding with its offsets; -1 where the finding has none."""

    finding: Finding
    source_offset: int = -1
    target_offset: int = -1
    """The last copied record, or the last record of the remote partition."""
    following: int = 0
    """Records of the remote partition after the last copied one."""
    other_source_offset: int = -1
    """The last of the source offsets that may be right, if the finding is ambiguous."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedLogs:
    """The ranges of both logs, and what is known about them."""

    source: LogRange
    target: LogRange
    syncs: tuple[OffsetSync, ...] = ()
    began_at_earliest: bool = True


PositionSearch: TypeAlias = Generator[SearchRead, SearchAnswer, SearchResult]
_PartRead: TypeAlias = Generator[SearchRead, SearchAnswer, LogPart]


def search_position(logs: SearchedLogs) -> PositionSearch:
    """Search where the source goes on behind the records of a remote partition."""
    result = SearchResult(finding=Finding.NO_RECORDS)
    window = LogPart(start=logs.target.end, end=logs.target.end)
    for size in WINDOWS:
        window = yield from _extend_window(window, logs.target, size)
        is_all = window.start <= logs.target.start
        if not window.records:
            return SearchResult(finding=Finding.NO_RECORDS if is_all else Finding.UNKNOWN)
        result = yield from _Search(logs, window).run()
        if is_all or result.finding in (Finding.FOUND, Finding.SOURCE_LATER):
            return result
    return result


def _extend_window(window: LogPart, target: LogRange, size: int) -> _PartRead:
    """Read the remote partition backwards, until the window has so many records."""
    step, reads = size, 0
    while len(window.records) < size and window.start > target.start:
        if reads >= (WINDOW_READS if window.records else MAX_READS):
            break
        part = yield from _read(ReadTarget(max(window.start - step, target.start)))
        if part.end < window.start and step > 1:
            step = max(step // 16, 1)  # large records: the read did not reach the window
            continue
        reads += 1
        before = len(window.records)
        window = part.up_to(window.start).joined(window)
        if len(window.records) == before:
            step *= 16  # markers, or compacted
    return window


def _read(request: ReadTarget | ReadSource) -> _PartRead:
    answer = yield request
    assert isinstance(answer, LogPart)
    return answer


@dataclass(slots=True)
class _Search:
    """The search for one window."""

    logs: SearchedLogs
    window: LogPart
    ambiguous: AmbiguousAlignment | None = None
    is_uncertain: bool = False
    """Whether a record that was not found may be at the source all the same."""
    is_source_later: bool = False
    has_time_of_record: bool = False
    """Whether the source holds the time of a record that it does not hold."""

    @property
    def span(self) -> int:
        """How many source offsets are compared on either side."""
        return len(self.window.records) + CONTEXT

    def run(self) -> PositionSearch:
        """Try predictions, then times."""
        last = self.window.records[-1]
        source = self.logs.source
        if source.start >= source.end:
            return SearchResult(finding=Finding.SOURCE_LATER, target_offset=last.offset)
        for predicted in self._predictions(last):
            found = yield from self._try_prediction(predicted)
            if found:
                return _found(found)
        found = yield from self._search_by_time()
        if found and not self.ambiguous:
            return _found(found)
        if self.ambiguous:
            return SearchResult(
                finding=Finding.AMBIGUOUS,
                source_offset=self.ambiguous.first_source_offset,
                target_offset=self.ambiguous.target_offset,
                other_source_offset=self.ambiguous.last_source_offset,
            )
        return SearchResult(finding=self._finding(), target_offset=last.offset)

    def _finding(self) -> Finding:
        """What follows if no record of the window was found."""
        if self.is_source_later:
            return Finding.SOURCE_LATER
        is_certain = self.has_time_of_record and not self.is_uncertain
        return Finding.FOREIGN if is_certain else Finding.UNKNOWN

    # -- predictions -----------------------------------------------------------------------------

    def _predictions(self, last: LoggedRecord) -> list[int]:
        """Source offsets at which the last record is expected, the best first."""
        predicted = [
            sync.upstream + last.offset - sync.downstream
            for sync in reversed(self.logs.syncs)
            if sync.downstream <= last.offset
        ][:1]
        source = self.logs.source
        return [
            offset
            for offset in dict.fromkeys([*predicted, last.offset])
            if source.start <= offset < source.end
        ]

    def _try_prediction(
        self, predicted: int
    ) -> Generator[SearchRead, SearchAnswer, Alignment | None]:
        """Compare the window with the source around an offset."""
        part = yield from self._read_source(predicted - 2 * self.span, predicted + self.span)
        found = yield from self._last_alignment(part)
        return found if found and found.is_proven and not found.following else None

    # -- times -----------------------------------------------------------------------------------

    def _search_by_time(self) -> Generator[SearchRead, SearchAnswer, Alignment | None]:
        records = self.window.records
        depths = [depth for depth in SAMPLES if depth < len(records)]
        for depth in dict.fromkeys([*depths, len(records) - 1]):
            record = records[-1 - depth]
            if record.has_producer_time:
                found = yield from self._search_at_time(record, is_last=depth == 0)
            elif depth == 0:
                found = yield from self._search_around_time(record)
            else:
                continue
            if found:
                return found
        return None

    def _search_at_time(
        self, record: LoggedRecord, *, is_last: bool
    ) -> Generator[SearchRead, SearchAnswer, Alignment | None]:
        """Search from the source offset of a record's timestamp on."""
        first = yield SourceOffsetAtTime(record.timestamp)
        assert isinstance(first, int)
        if first < 0:
            return None  # the source holds no record of this time or later
        part = yield from self._read_source(first - self.span, first + 1)
        for _ in range(PARTS_AFTER_TIME):
            found = yield from self._last_alignment(part)
            if found or self.ambiguous:
                return found
            if part.end >= self.logs.source.end or _is_later(part, first, record.timestamp):
                break
            part = part.joined((yield from _read(ReadSource(part.end))))
        else:
            self.is_uncertain = True
        self.is_uncertain = self.is_uncertain or part.has_holes
        is_older = bool(part.records) and part.records[0].timestamp > record.timestamp
        is_beginning = part.start <= self.logs.source.start
        if is_beginning and is_older and self.logs.source.start:
            self.is_source_later = self.is_source_later or is_last
        else:
            self.has_time_of_record = True
        return None

    def _search_around_time(
        self, record: LoggedRecord
    ) -> Generator[SearchRead, SearchAnswer, Alignment | None]:
        """Search around the time at which the target appended a record."""
        source, middle = self.logs.source, -1
        if record.timestamp >= 0:
            answer = yield SourceOffsetAtTime(record.timestamp)
            assert isinstance(answer, int)
            middle = answer
        middle = source.end if middle < 0 else middle
        part = yield from self._read_source(
            middle - RECORDS_AROUND_TIME, middle + RECORDS_AROUND_TIME
        )
        found = yield from self._last_alignment(part)
        if found and found.is_proven:
            return found
        is_all = part.start <= source.start and part.end >= source.end
        self.is_uncertain = found is not None or not is_all or part.has_holes
        self.has_time_of_record = is_all
        return None

    def _last_alignment(
        self, part: LogPart
    ) -> Generator[SearchRead, SearchAnswer, Alignment | None]:
        """Align, and read on behind a found record.

        The window may hold later source records, and equal records may follow at the source.
        """
        while True:
            found = self._align(part)
            if not isinstance(found, Alignment):
                return None
            wanted = min(found.source_offset + self.span, self.logs.source.end)
            if part.end >= wanted:
                return found
            more = yield from self._read_source(part.end, wanted)
            if more.end <= part.end:
                return found
            part = part.joined(more)

    # -- the source ------------------------------------------------------------------------------

    def _read_source(self, first: int, end: int) -> _PartRead:
        """Read the source from an offset up to another, within its log."""
        source = self.logs.source
        first, end = max(first, source.start), min(end, source.end)
        part = LogPart(start=first, end=first)
        for _ in range(MAX_READS):
            if part.end >= end:
                break
            read = yield from _read(ReadSource(part.end))
            if read.end <= part.end:
                break
            part = part.joined(read)
        return part

    def _align(self, part: LogPart) -> Alignment | AmbiguousAlignment | None:
        found = align(
            self.window,
            part,
            AlignmentRules(
                synced_offsets={sync.downstream: sync.upstream for sync in self.logs.syncs},
                is_source_start=part.start == 0,
                is_target_start=self.window.start == 0,
                began_at_earliest=self.logs.began_at_earliest,
            ),
        )
        if isinstance(found, AmbiguousAlignment):
            self.ambiguous = found
        return found


def _is_later(part: LogPart, first: int, timestamp: int) -> bool:
    """Whether the source has gone on, from an offset on, to a later time than a record's."""
    behind = [record.timestamp for record in part.records if record.offset >= first]
    return min(behind[len(behind) // 2 :], default=timestamp) > timestamp + SAFE_MS


def _found(found: Alignment) -> SearchResult:
    return SearchResult(
        finding=Finding.FOUND,
        source_offset=found.source_offset,
        target_offset=found.target_offset,
        following=found.following,
    )
