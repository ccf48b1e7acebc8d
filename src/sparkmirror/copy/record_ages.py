"""How old records are when a task has them: MirrorMaker 2's record age and replication latency.

    record timestamp ......... fetched ......... acknowledged
           |---- record age -----|                    |
           |---------- replication latency -----------|

The header of a batch has the timestamp of its first record and the largest one. So no batch is
opened: the ages of its records lie between two values, and their average is the middle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_RECENT_REPORTS: Final = 3
_NEVER: Final = 1 << 62


class AgeSummary(NamedTuple):
    """The ages of some records at one event, in milliseconds. A clock may make them negative."""

    records: int = 0
    total_ms: int = 0
    min_ms: int = 0
    max_ms: int = 0
    last_ms: int = 0
    """That of the newest record of the last batch."""


class RecordAges(NamedTuple):
    """The ages at both events."""

    fetched: AgeSummary = AgeSummary()
    """MirrorMaker 2's record age."""
    acknowledged: AgeSummary = AgeSummary()
    """MirrorMaker 2's replication latency."""

    @classmethod
    def from_json(cls, value: Sequence[Sequence[int]]) -> RecordAges:
        """Read what `json.dumps` makes of it."""
        fetched, acknowledged = (AgeSummary(*map(int, summary)) for summary in value)
        return cls(fetched, acknowledged)


@dataclass(slots=True)
class AgeCounter:
    """Adds up the records of one partition at one event, until the next report."""

    records: int = 0
    _twice_total_ms: int = 0
    _min_ms: int = _NEVER
    _max_ms: int = -_NEVER
    _last_ms: int = 0

    def add(self, oldest_ms: int, newest_ms: int, records: int, now_ms: int) -> None:
        """Add records between two timestamps. Every batch passes here: keep it short.

        Records without a timestamp have no age. A batch from which compaction took records may
        have a time of its own in place of the first timestamp: then all have the largest one.
        """
        if newest_ms < 0:
            return
        low = high = now_ms - newest_ms
        if 0 <= oldest_ms < newest_ms:
            high = now_ms - oldest_ms
        self.records += records
        self._twice_total_ms += records * (low + high)
        self._last_ms = low
        if low < self._min_ms:
            self._min_ms = low
        if high > self._max_ms:
            self._max_ms = high

    def summarize(self) -> AgeSummary:
        """Return the ages of what was added."""
        if not self.records:
            return AgeSummary()
        return AgeSummary(
            records=self.records,
            total_ms=self._twice_total_ms // 2,
            min_ms=self._min_ms,
            max_ms=self._max_ms,
            last_ms=self._last_ms,
        )


@dataclass(slots=True)
class _ReportedAges:
    """The ages at one event since the driver started."""

    _records: int = 0
    _total_ms: int = 0
    _recent: deque[AgeSummary] = field(default_factory=lambda: deque(maxlen=_RECENT_REPORTS))

    def add(self, ages: AgeSummary) -> None:
        if ages.records:
            self._records += ages.records
            self._total_ms += ages.total_ms
            self._recent.append(ages)

    def summarize(self) -> AgeSummary:
        if not self._recent:
            return AgeSummary()
        return AgeSummary(
            records=self._records,
            total_ms=self._total_ms,
            min_ms=min(one.min_ms for one in self._recent),
            max_ms=max(one.max_ms for one in self._recent),
            last_ms=self._recent[-1].last_ms,
        )


@dataclass(slots=True)
class ReportedAges:
    """The ages of one partition since the driver started, from the reports of its tasks.

    Records and totals are of all reports. The bounds are of the last few reports: a status of the
    driver may follow two reports, and the reader of every status then misses no bound.
    """

    _fetched: _ReportedAges = field(default_factory=_ReportedAges)
    _acknowledged: _ReportedAges = field(default_factory=_ReportedAges)
    _summary: RecordAges = RecordAges()

    def add(self, ages: RecordAges) -> None:
        """Add the ages of one report."""
        self._fetched.add(ages.fetched)
        self._acknowledged.add(ages.acknowledged)
        self._summary = RecordAges(self._fetched.summarize(), self._acknowledged.summarize())

    def summarize(self) -> RecordAges:
        """Return the ages so far."""
        return self._summary
