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

from sparkmirror.cli.copy_legs import Leg, Legs, by_topic
from sparkmirror.copy.snapshot import PartitionView, Snapshot
from sparkmirror.model import TopicPartition

WINDOW_S = 10.0
"""Rates are of so long: short enough to follow, long enough not to jump."""


class Held(NamedTuple):
    """A partition that does not move."""

    partition: str
    reason: str
    is_halted: bool = False
    """Whether it waits for somebody to decide; else it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProgress:
    """How one topic stands."""

    topic: str
    remote: str
    partitions: int
    position: int
    """The sum of its partitions' next source offsets."""
    copied: int
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
    held: tuple[Held, ...]
    lanes: Mapping[str, int]
    """How many batches took which lane, by the reason for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
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
        return sum(topic.copied for topic in self.topics)

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
    def held(self) -> tuple[Held, ...]:
        """Partitions that do not move, of all topics."""
        return tuple(held for topic in self.topics for held in topic.held)

    @property
    def eta_s(self) -> float | None:
        """The longest time of any topic; None if one of them cannot tell."""
        times = [topic.eta_s for topic in self.topics]
        known = [time for time in times if time is not None]
        return max(known, default=0.0) if len(known) == len(times) else None


class Rate:
    """How fast a number grows, over the last while."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._seen: deque[tuple[float, int]] = deque()

    def take(self, value: int, now: float) -> float:
        """Note a value; return the growth per second."""
        self._seen.append((now, value))
        while len(self._seen) > 2 and self._seen[1][0] <= now - self._window_s:
            self._seen.popleft()
        before, first = self._seen[0]
        return max(value - first, 0) / (now - before) if now > before else 0.0


class Total:
    """A count that goes on when whoever counts is replaced and begins with nought again."""

    def __init__(self) -> None:
        self._run = ""
        self._before = 0
        self._latest = 0

    def take(self, value: int, run: str) -> int:
        """Note a value of a run; return the sum of all runs."""
        if run != self._run:
            self._run, self._before = run, self._before + self._latest
        self._latest = value
        return self._before + value


@dataclass(slots=True)
class _Track:
    """One topic over time."""

    records: Rate = field(default_factory=Rate)
    offsets: Rate = field(default_factory=Rate)
    sizes: Rate = field(default_factory=Rate)
    size: Total = field(default_factory=Total)
    lanes: dict[str, Total] = field(default_factory=dict)

    def count(self, lanes: Mapping[str, int], run: str) -> dict[str, int]:
        """Add up the lanes of all runs; a reason may be missing from a later one."""
        for reason in lanes.keys() - self.lanes.keys():
            self.lanes[reason] = Total()
        return {
            reason: total.take(lanes.get(reason, 0), run) for reason, total in self.lanes.items()
        }


class Meter:
    """Turns snapshots into progress, in the order in which they come."""

    def __init__(
        self,
        legs: Legs,
        remote_topics: Mapping[str, str],
        *,
        has_goal: bool,
        began: float,
    ) -> None:
        self._legs = by_topic(legs)
        self._remote_topics = remote_topics
        self._has_goal = has_goal
        self._began = began
        self._opened: float | None = None
        self._views: dict[TopicPartition, PartitionView] = {}
        """The latest view of each partition that said where it stands."""
        self._records_rate, self._bytes_rate = Rate(), Rate()
        self._tracks = {topic: _Track() for topic in self._legs}

    def take(self, snapshot: Snapshot, now: float, run: str = "") -> Progress:
        """Say how everything stands. `run` names the driver that the snapshot is of."""
        self._look(snapshot, now)
        topics = tuple(self._topic(topic, snapshot, now, run) for topic in self._legs)
        records = sum(topic.copied for topic in topics)
        size = sum(topic.bytes for topic in topics)
        return Progress(
            elapsed_s=now - self._began,
            copying_s=0.0 if self._opened is None else now - self._opened,
            records_per_s=self._speed(self._records_rate, records, now),
            bytes_per_s=self._speed(self._bytes_rate, size, now),
            topics=topics,
        )

    def _topic(self, topic: str, snapshot: Snapshot, now: float, run: str) -> TopicProgress:
        track = self._tracks[topic]
        legs = self._legs[topic]
        views = {p: self._views.get(p) for p in legs}
        position = sum(_position(views[p], leg) for p, leg in legs.items())
        copied = sum(view.records - legs[p].records for p, view in views.items() if view)
        told = (snapshot.partitions.get(str(p)) for p in legs)
        size = track.size.take(sum(view.bytes for view in told if view), run)
        lag = sum(self._lag(views[p], leg) for p, leg in legs.items())
        gone = position - sum(leg.first for leg in legs.values())
        speed = self._speed(track.offsets, position, now)
        held = tuple(_held((p, snapshot.partitions.get(str(p))) for p in legs))
        return TopicProgress(
            topic=topic,
            remote=self._remote_topics[topic],
            partitions=len(legs),
            position=position,
            copied=copied,
            bytes=size,
            lag=lag,
            fraction=gone / (gone + lag) if lag and gone >= 0 else float(not lag),
            records_per_s=self._speed(track.records, copied, now),
            bytes_per_s=self._speed(track.sizes, size, now),
            eta_s=None if held and lag else _eta_s(lag, speed),
            held=held,
            lanes=track.count(snapshot.lanes.get(topic, {}), run),
        )

    def _look(self, snapshot: Snapshot, now: float) -> None:
        """Take in where partitions stand; a driver that has just started does not know it yet."""
        for legs in self._legs.values():
            for partition in legs:
                view = snapshot.partitions.get(str(partition))
                if view and view.position >= 0:
                    self._views[partition] = view
        if self._opened is None and self._views:
            self._opened = now

    def _speed(self, rate: Rate, value: int, now: float) -> float:
        """Leave the time that Spark took to start out of every rate."""
        return 0.0 if self._opened is None else rate.take(value, now)

    def _lag(self, view: PartitionView | None, leg: Leg) -> int:
        end = leg.goal if self._has_goal or view is None or view.end < 0 else view.end
        return max(end - _position(view, leg), 0)


def _position(view: PartitionView | None, leg: Leg) -> int:
    return view.position if view else leg.first


def _eta_s(lag: int, speed: float) -> float | None:
    if not lag:
        return 0.0
    return lag / speed if speed else None


def _held(views: Iterable[tuple[TopicPartition, PartitionView | None]]) -> Iterable[Held]:
    for partition, view in views:
        if view and (view.state == "held" or view.reason):
            yield Held(str(partition), view.reason or view.state, view.halted)
