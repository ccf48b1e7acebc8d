"""How fast a copy goes and how long it will take: figures out of one snapshot after the other.

Records are counted by the ledger, so that those count too which a driver copied and died before it
could tell, and nothing else does: neither markers on the target nor gaps at the source. Bytes and
lanes are known by telling only; a driver that is started anew counts from nought, so those of
several drivers are added up. Pure; the time comes in with each snapshot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.cli.copy.ranges import PartitionRange, PartitionRanges, by_topic
from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from sparkmirror.model import TopicPartition

RATE_WINDOW_S = 10.0
"""Rates are of so long: short enough to follow, long enough not to jump."""


class HeldPartition(NamedTuple):
    """A partition that does not move."""

    partition: str
    reason: str
    is_halted: bool = False
    """Whether it waits for somebody to decide; else it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProgress:
    """How one topic stands."""

    topic: str
    remote_topic: str
    partitions: int
    position: int
    """The sum of its partitions' next source offsets."""
    records: int
    """Records copied since the beginning."""
    bytes: int
    """Of what was copied, as batches lie on the wire: compressed if they are."""
    lag: int
    """Source offsets still to go: to the goal, or to the end where there is no goal."""
    fraction: float
    records_per_s: float
    bytes_per_s: float
    eta_s: float | None
    """None as long as it cannot be told, 0 when it is there."""
    held: tuple[HeldPartition, ...]
    lanes: Mapping[str, int]
    """How many batches took which lane, by the reason for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProgress:
    """How everything stands."""

    elapsed_s: float
    copying_s: float
    """Of it, since the first partition was opened: without the time that Spark took to start."""
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
    def lag(self) -> int:
        """Source offsets still to go, of all topics."""
        return sum(topic.lag for topic in self.topics)

    @property
    def partitions(self) -> int:
        """How many partitions are copied."""
        return sum(topic.partitions for topic in self.topics)

    @property
    def held(self) -> tuple[HeldPartition, ...]:
        """Partitions that do not move, of all topics."""
        return tuple(held for topic in self.topics for held in topic.held)

    @property
    def eta_s(self) -> float | None:
        """The longest time of any topic; None if one of them cannot tell."""
        times = [topic.eta_s for topic in self.topics]
        known = [time for time in times if time is not None]
        return max(known, default=0.0) if len(known) == len(times) else None


class SlidingRate:
    """How fast a number grows, over the last while."""

    def __init__(self, window_s: float = RATE_WINDOW_S) -> None:
        self._window_s = window_s
        self._samples: deque[tuple[float, int]] = deque()

    def update(self, value: int, now: float) -> float:
        """Note a value; return the growth per second."""
        self._samples.append((now, value))
        while len(self._samples) > 2 and self._samples[1][0] <= now - self._window_s:
            self._samples.popleft()
        before, first = self._samples[0]
        return max(value - first, 0) / (now - before) if now > before else 0.0


class CumulativeCounter:
    """A count that goes on when whoever counts is replaced and begins with nought again."""

    def __init__(self) -> None:
        self._driver = ""
        self._previous_drivers = 0
        self._latest = 0

    def update(self, value: int, run: str) -> int:
        """Note a value of a run; return the sum of all runs."""
        if run != self._driver:
            self._driver, self._previous_drivers = run, self._previous_drivers + self._latest
        self._latest = value
        return self._previous_drivers + value


@dataclass(slots=True)
class _TopicCounters:
    """One topic over time."""

    record_rate: SlidingRate = field(default_factory=SlidingRate)
    offset_rate: SlidingRate = field(default_factory=SlidingRate)
    byte_rate: SlidingRate = field(default_factory=SlidingRate)
    total_bytes: CumulativeCounter = field(default_factory=CumulativeCounter)
    lane_batches: dict[str, CumulativeCounter] = field(default_factory=dict)

    def update_lanes(self, lanes: Mapping[str, int], run: str) -> dict[str, int]:
        """Add up the lanes of all runs; a reason may be missing from a later one."""
        for reason in lanes.keys() - self.lane_batches.keys():
            self.lane_batches[reason] = CumulativeCounter()
        return {
            reason: total.update(lanes.get(reason, 0), run)
            for reason, total in self.lane_batches.items()
        }


class ProgressTracker:
    """Turns snapshots into progress, in the order in which they come."""

    def __init__(
        self,
        legs: PartitionRanges,
        remote_topics: Mapping[str, str],
        *,
        has_goal: bool,
        began: float,
    ) -> None:
        self._ranges = by_topic(legs)
        self._remote_topics = remote_topics
        self._has_end = has_goal
        self._started_at = began
        self._copying_since: float | None = None
        self._views: dict[TopicPartition, PartitionView] = {}
        """The latest view of each partition that said where it stands."""
        self._record_rate, self._byte_rate = SlidingRate(), SlidingRate()
        self._counters = {topic: _TopicCounters() for topic in self._ranges}

    def update(self, snapshot: CopySnapshot, now: float, run: str = "") -> CopyProgress:
        """Say how everything stands. `run` names the driver that the snapshot is of."""
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
        track = self._counters[topic]
        legs = self._ranges[topic]
        views = {p: self._views.get(p) for p in legs}
        position = sum(_position(views[p], leg) for p, leg in legs.items())
        copied = sum(view.records - legs[p].records_before for p, view in views.items() if view)
        told = (snapshot.partitions.get(str(p)) for p in legs)
        size = track.total_bytes.update(sum(view.bytes for view in told if view), run)
        lag = sum(self._lag(views[p], leg) for p, leg in legs.items())
        gone = position - sum(leg.start_offset for leg in legs.values())
        speed = self._rate(track.offset_rate, position, now)
        held = tuple(_held_partitions((p, snapshot.partitions.get(str(p))) for p in legs))
        return TopicProgress(
            topic=topic,
            remote_topic=self._remote_topics[topic],
            partitions=len(legs),
            position=position,
            records=copied,
            bytes=size,
            lag=lag,
            fraction=gone / (gone + lag) if lag and gone >= 0 else float(not lag),
            records_per_s=self._rate(track.record_rate, copied, now),
            bytes_per_s=self._rate(track.byte_rate, size, now),
            eta_s=None if held and lag else _eta_s(lag, speed),
            held=held,
            lanes=track.update_lanes(snapshot.lanes.get(topic, {}), run),
        )

    def _update_views(self, snapshot: CopySnapshot, now: float) -> None:
        """Take in where partitions stand; a driver that has just started does not know it yet."""
        for legs in self._ranges.values():
            for partition in legs:
                view = snapshot.partitions.get(str(partition))
                if view and view.position >= 0:
                    self._views[partition] = view
        if self._copying_since is None and self._views:
            self._copying_since = now

    def _rate(self, rate: SlidingRate, value: int, now: float) -> float:
        """Leave the time that Spark took to start out of every rate."""
        return 0.0 if self._copying_since is None else rate.update(value, now)

    def _lag(self, view: PartitionView | None, leg: PartitionRange) -> int:
        end = leg.end_offset if self._has_end or view is None or view.end < 0 else view.end
        return max(end - _position(view, leg), 0)


def _position(view: PartitionView | None, leg: PartitionRange) -> int:
    return view.position if view else leg.start_offset


def _eta_s(lag: int, speed: float) -> float | None:
    if not lag:
        return 0.0
    return lag / speed if speed else None


def _held_partitions(
    views: Iterable[tuple[TopicPartition, PartitionView | None]],
) -> Iterable[HeldPartition]:
    for partition, view in views:
        if view and (view.state == "held" or view.reason):
            yield HeldPartition(str(partition), view.reason or view.state, view.halted)
