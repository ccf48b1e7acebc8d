"""Two partition logs in memory, and the answers that they give to a search for the position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sparkmirror.copy.driver.cluster_queries import LogRange
from sparkmirror.copy.driver.resume.existing.log_part import LoggedRecord, LogPart
from sparkmirror.copy.driver.resume.existing.position_search import (
    ReadSource,
    ReadTarget,
    SearchAnswer,
    SearchedLogs,
    SearchRead,
    SearchResult,
    search_position,
)
from sparkmirror.mirror.offsets.records import OffsetSync

MARKER = None
"""A slot of a log that a marker takes."""


def record(value: str, timestamp: int = 0) -> LoggedRecord:
    """A record without an offset; the log gives it one."""
    return LoggedRecord(
        offset=-1, content=(None, value.encode(), ()), timestamp=timestamp, has_producer_time=True
    )


@dataclass(slots=True)
class LogInMemory:
    """Records by offset; markers take an offset; a missing offset is a hole."""

    start: int = 0
    end: int = 0
    records: list[LoggedRecord] = field(default_factory=list)
    markers: list[int] = field(default_factory=list)
    records_per_read: int = 1000

    def append(self, slots: Iterable[LoggedRecord | None]) -> LogInMemory:
        """Append records and markers."""
        for slot in slots:
            if slot is MARKER:
                self.markers.append(self.end)
            else:
                self.records.append(slot._replace(offset=self.end))
            self.end += 1
        return self

    def with_append_times(self) -> LogInMemory:
        """The log of a topic with LogAppendTime: the broker has set every timestamp."""
        stamped = [
            one._replace(timestamp=9_000_000, has_producer_time=False) for one in self.records
        ]
        return replace(self, records=stamped)

    def without(self, offsets: Iterable[int]) -> LogInMemory:
        """The log after compaction has removed records."""
        gone = set(offsets)
        return replace(self, records=[one for one in self.records if one.offset not in gone])

    def deleted_before(self, offset: int) -> LogInMemory:
        """The log after retention."""
        return replace(
            self, start=offset, records=[one for one in self.records if one.offset >= offset]
        )

    def read(self, offset: int) -> LogPart:
        """What one fetch brings."""
        assert self.start <= offset <= self.end, "the search reads outside of the log"
        kept = [one for one in self.records if one.offset >= offset]
        end = kept[self.records_per_read].offset if len(kept) > self.records_per_read else self.end
        return LogPart(
            start=offset,
            end=end,
            records=tuple(one for one in kept if one.offset < end),
            explained=tuple(number for number in self.markers if offset <= number < end),
        )

    def offset_at(self, timestamp: int) -> int:
        """ListOffsets by timestamp."""
        return next((one.offset for one in self.records if one.timestamp >= timestamp), -1)

    @property
    def range(self) -> LogRange:
        return LogRange(start=self.start, end=self.end, high_watermark=self.end)


@dataclass(slots=True)
class ExistingLogs:
    """A source and a remote partition."""

    source: LogInMemory
    target: LogInMemory
    syncs: Sequence[OffsetSync] = ()
    began_at_earliest: bool = True
    reads: int = 0

    def search(self) -> SearchResult:
        """Run a search to its end."""
        search = search_position(
            SearchedLogs(
                source=self.source.range,
                target=self.target.range,
                syncs=tuple(self.syncs),
                began_at_earliest=self.began_at_earliest,
            )
        )
        answer: SearchAnswer | None = None
        while True:
            try:
                read = next(search) if answer is None else search.send(answer)
            except StopIteration as ended:
                result: SearchResult = ended.value
                return result
            self.reads += 1
            answer = self._answer(read)

    def _answer(self, read: SearchRead) -> SearchAnswer:
        match read:
            case ReadTarget():
                return self.target.read(read.offset)
            case ReadSource():
                return self.source.read(read.offset)
        return self.source.offset_at(read.timestamp_ms)
