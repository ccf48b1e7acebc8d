"""Reports of a task: what it has copied and where its partitions stand, and how long it may go on.

Counts acknowledged parcels between two reports, as runs that continue one another, and leaves out
of a report what the driver has been told before. A report that is answered by a beat renews the
lease, from the moment at which the report was sent: after that, silence counts.

Knows no broker; what keeps a partition's brokers away is asked of whoever knows.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sparkmirror.copy.course import Course
from sparkmirror.copy.messages import Message, Report, Standing
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.receipt import Receipts
from sparkmirror.mirror.runs import Run


@dataclass(slots=True)
class Tally:
    """What happened since the last report."""

    runs: list[tuple[str, int, int, int]] = field(default_factory=list)
    bytes: Counter[str] = field(default_factory=Counter)
    _last: dict[str, int] = field(default_factory=dict)
    """Where in `runs` the last one of each partition stands."""

    def add(self, key: str, runs: list[Run], size: int) -> None:
        """Count an acknowledged parcel; runs that continue one another are told as one."""
        for source, target, length in runs:
            place = self._last.get(key, -1)
            if place >= 0:
                _, first, at, before = self.runs[place]
                if first + before == source and at + before == target:
                    self.runs[place] = (key, first, at, before + length)
                    continue
            self._last[key] = len(self.runs)
            self.runs.append((key, source, target, length))
        self.bytes[key] += size


@dataclass(slots=True)
class Reporting:
    """Tells the driver, and hears from it that it listens."""

    every_s: float
    send: Callable[[Message], None]
    trouble: Callable[[Course], str]
    """Why a partition's brokers cannot be talked to; empty if they can."""
    leased_at: float = field(default_factory=time.monotonic)
    """When the last report was sent that the driver has heard."""
    due_at: float = 0.0
    receipts: Receipts = field(default_factory=Receipts)
    _tally: Tally = field(default_factory=Tally)
    _unanswered: deque[float] = field(default_factory=deque)
    """When the reports were sent that no beat has answered yet."""
    _told: dict[str, Standing] = field(default_factory=dict)
    """What the driver knows of each partition."""

    def count(self, course: Course, parcel: Parcel, runs: list[Run]) -> None:
        """Count what is on the target for good."""
        self._tally.add(course.key, runs, parcel.size)
        self.receipts.add(course.partition.lease, parcel, runs)

    def answered(self) -> None:
        """The driver has heard the oldest report that it had not answered."""
        if self._unanswered:
            self.leased_at = self._unanswered.popleft()

    def report_if_due(self, courses: Collection[Course], now: float) -> None:
        """Report, if it is time to."""
        if now >= self.due_at:
            self.due_at = now + self.every_s
            self.report(courses)

    def report(self, courses: Collection[Course]) -> None:
        """Tell what was copied since the last report, and what has changed."""
        tally, self._tally = self._tally, Tally()
        self._unanswered.append(time.monotonic())
        self.send(
            Report(
                standings=self._changed_standings(courses),
                runs=tally.runs,
                lanes=self._take_lanes(courses),
                bytes=dict(tally.bytes),
            )
        )

    def _take_lanes(self, courses: Collection[Course]) -> dict[str, dict[str, int]]:
        """Batches by topic and reason of their lane, since the last report."""
        lanes: dict[str, Counter[str]] = defaultdict(Counter)
        for course in courses:
            counted = {reason.value: n for reason, n in course.sorter.take_lanes().items()}
            if counted:
                source = course.partition.lease.source
                lanes[source.topic].update(counted)
                self.receipts.count(source, counted)
        return {topic: dict(counts) for topic, counts in lanes.items()}

    def _changed_standings(self, courses: Collection[Course]) -> dict[str, Standing]:
        """Where partitions stand, those that were told the same before left out."""
        standings = {course.key: course.standing(self.trouble(course)) for course in courses}
        changed = {key: one for key, one in standings.items() if self._told.get(key) != one}
        self._told = standings
        return changed
