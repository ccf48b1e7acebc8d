"""Rates, lag and remaining time of a copy, computed from consecutive snapshots. Pure.

Record counts come from the ledger. So records count that a driver copied before it died without a
report; transaction markers on the target and gaps in the source do not count. Bytes and lanes come
from reports only. A restarted driver counts them from zero, so the counts of several drivers are
added up. The caller passes the time with each snapshot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sparkmirror.cli.copy.completion import BlockedPartition, blocked_partition
from sparkmirror.cli.copy.ranges import PartitionRange, PartitionRanges, by_topic
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView, total_lag
from sparkmirror.model import TopicPartition

RATE_WINDOW_S = 10.0
"""The time that a rate is averaged over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProgress:
    """The progress of one topic."""

    topic: str
    remote_topic: str
    partitions: int
    position: int
    """The sum of its partitions' next source offsets."""
    records: int
    """Records copied since the start of this command."""
    bytes: int
    """Size of the copied batches as sent, so after compression."""
    lag: int | None
    """Source offsets still to copy: to the end taken at the start, or to the current end.

    None while it is unknown for a partition.
    """
    fraction: float | None
    """Part of the offsets that is copied; None while the lag is unknown."""
    records_per_s: float
    bytes_per_s: float
    eta_s: float | None
    """None if unknown, 0 when finished."""
    held: tuple[BlockedPartition, ...]
    lanes: Mapping[str, int]
    """Number of batches by lane reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProgress:
    """The progress of all topics."""

    elapsed_s: float
    copying_s: float
    """The time since the first partition was opened: without the start of Spark."""
    records_per_s: float
    bytes_per_s: float
    topics: tuple[TopicProgress, ...]

    @property
    def records(self) -> int:
        """Records copied, of all topics."""
        return sum(topic.records for topic in self.topics)

    @property
    def bytes(self) -> int:
        """Bytes copied, of all topics."""
        return sum(topic.bytes for topic in self.topics)

    @property
    def lag(self) -> int | None:
        """Source offsets still to copy, of all topics; None if one is unknown."""
        return total_lag(topic.lag for topic in self.topics)

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return sum(topic.partitions for topic in self.topics)

    @property
    def held(self) -> tuple[BlockedPartition, ...]:
        """Partitions that do not move, of all topics."""
        return tuple(held for topic in self.topics for held in topic.held)

    @property
    def eta_s(self) -> float | None:
        """The longest remaining time of a topic; None if one is unknown."""
        times = [topic.eta_s for topic in self.topics]
        known = [time for time in times if time is not None]
        return max(known, default=0.0) if len(known) == len(times) else None


class SlidingRate:
    """The growth per second of a number over a time window."""

    def __init__(self, window_s: float = RATE_WINDOW_S) -> None:
        self._window_s = window_s
        self._samples: deque[tuple[float, int]] = deque()

    def update(self, value: int, now: float) -> float:
        """Add a value; return the growth per second."""
        self._samples.append((now, value))
        while len(self._samples) > 2 and self._samples[1][0] <= now - self._window_s:
            self._samples.popleft()
        before, first = self._samples[0]
        return max(value - first, 0) / (now - before) if now > before else 0.0


class CumulativeCounter:
    """The sum of a counter over several drivers, each of which counts from zero."""

    def __init__(self) -> None:
        self._driver = ""
        self._previous_drivers = 0
        self._latest = 0

    def update(self, value: int, run: str) -> int:
        """Add a value of a driver; return the sum over all drivers."""
        if run != self._driver:
            self._driver, self._previous_drivers = run, self._previous_drivers + self._latest
        self._latest = value
        return self._previous_drivers + value


@dataclass(slots=True)
class _TopicCounters:
    """Counters of one topic."""

    record_rate: SlidingRate = field(default_factory=SlidingRate)
    offset_rate: SlidingRate = field(default_factory=SlidingRate)
    byte_rate: SlidingRate = field(default_factory=SlidingRate)
    total_bytes: CumulativeCounter = field(default_factory=CumulativeCounter)
    lane_batches: dict[str, CumulativeCounter] = field(default_factory=dict)

    def update_lanes(self, lanes: Mapping[str, int], run: str) -> dict[str, int]:
        """Return the batches by lane of all drivers; a later driver may lack a reason."""
        for reason in lanes.keys() - self.lane_batches.keys():
            self.lane_batches[reason] = CumulativeCounter()
        return {
            reason: total.update(lanes.get(reason, 0), run)
            for reason, total in self.lane_batches.items()
        }


class ProgressTracker:
    """Turns snapshots into progress, in their order."""

    def __init__(
        self,
        ranges: PartitionRanges,
        remote_topics: Mapping[str, str],
        *,
        has_end: bool,
        started_at: float,
    ) -> None:
        self._ranges = by_topic(ranges)
        self._remote_topics = remote_topics
        self._has_end = has_end
        self._started_at = started_at
        self._copying_since: float | None = None
        self._views: dict[TopicPartition, PartitionView] = {}
        """The latest view of each partition with a known position."""
        self._record_rate, self._byte_rate = SlidingRate(), SlidingRate()
        self._counters = {topic: _TopicCounters() for topic in self._ranges}

    def update(self, snapshot: CopySnapshot, now: float, run: str = "") -> CopyProgress:
        """Return the progress at the time `now`. `run` identifies the driver of the snapshot."""
        self._update_views(snapshot, now)
        topics = tuple(self._topic_progress(topic, snapshot, now, run) for topic in self._ranges)
        records = sum(topic.records for topic in topics)
        size = sum(topic.bytes for topic in topics)
        return CopyProgress(
            elapsed_s=now - self._started_at,
            copying_s=0.0 if self._copying_since is None else now - self._copying_since,
            records_per_s=self._rate(self._record_rate, records, now),
            bytes_per_s=self._rate(self._byte_rate, size, now),
            topics=topics,
        )

    def _topic_progress(
        self, topic: str, snapshot: CopySnapshot, now: float, run: str
    ) -> TopicProgress:
        counters = self._counters[topic]
        ranges = self._ranges[topic]
        views = {p: self._views.get(p) for p in ranges}
        position = sum(
            _position(views[p], partition_range) for p, partition_range in ranges.items()
        )
        copied = sum(view.records - ranges[p].records_before for p, view in views.items() if view)
        reported = (snapshot.partitions.get(str(p)) for p in ranges)
        size = counters.total_bytes.update(sum(view.bytes for view in reported if view), run)
        lag = total_lag(
            self._lag(snapshot.partitions.get(str(p)), views[p], partition_range)
            for p, partition_range in ranges.items()
        )
        done = position - sum(partition_range.start_offset for partition_range in ranges.values())
        speed = self._rate(counters.offset_rate, position, now)
        held = tuple(_held_partitions((p, snapshot.partitions.get(str(p))) for p in ranges))
        return TopicProgress(
            topic=topic,
            remote_topic=self._remote_topics[topic],
            partitions=len(ranges),
            position=position,
            records=copied,
            bytes=size,
            lag=lag,
            fraction=_fraction(done, lag),
            records_per_s=self._rate(counters.record_rate, copied, now),
            bytes_per_s=self._rate(counters.byte_rate, size, now),
            eta_s=None if held and lag != 0 else _eta_s(lag, speed),
            held=held,
            lanes=counters.update_lanes(snapshot.lanes.get(topic, {}), run),
        )

    def _update_views(self, snapshot: CopySnapshot, now: float) -> None:
        """Keep the last known position: a driver that has just started reports none."""
        for ranges in self._ranges.values():
            for partition in ranges:
                view = snapshot.partitions.get(str(partition))
                if view and view.position >= 0:
                    self._views[partition] = view
        if self._copying_since is None and self._views:
            self._copying_since = now

    def _rate(self, rate: SlidingRate, value: int, now: float) -> float:
        """The rate without the time that Spark needs to start."""
        return 0.0 if self._copying_since is None else rate.update(value, now)

    def _lag(
        self,
        reported: PartitionView | None,
        last: PartitionView | None,
        partition_range: PartitionRange,
    ) -> int | None:
        """Return the lag. `reported` is of this snapshot, `last` has the last known position.

        Without an end of the copy only this snapshot knows the end of the log; before the first
        report the end taken at the start counts. A halted partition is never finished.
        """
        if not self._has_end and last is not None:
            return reported.lag if reported else None
        lag = max(partition_range.end_offset - _position(last, partition_range), 0)
        return None if lag == 0 and reported and reported.halted else lag


def _position(view: PartitionView | None, partition_range: PartitionRange) -> int:
    return view.position if view else partition_range.start_offset


def _fraction(done: int, lag: int | None) -> float | None:
    if lag is None:
        return None
    return done / (done + lag) if lag and done >= 0 else float(not lag)


def _eta_s(lag: int | None, speed: float) -> float | None:
    if lag is None:
        return None
    if lag == 0:
        return 0.0
    return lag / speed if speed else None


def _held_partitions(
    views: Iterable[tuple[TopicPartition, PartitionView | None]],
) -> Iterable[BlockedPartition]:
    for partition, view in views:
        blocked = blocked_partition(str(partition), view) if view else None
        if blocked:
            yield blocked
