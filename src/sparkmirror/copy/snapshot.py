"""The state of a copy job, which the driver publishes once a second. Plain values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.offset_commits import OffsetCommits
from sparkmirror.copy.record_ages import RecordAges

MAX_EVENTS = 10_000
"""As many events of a driver are kept; a status has those that are new."""
SPARK_STARTS = "the Spark driver is starting"
"""Why no partition is copied in the first seconds of a driver."""
_WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One source partition. Offsets are next offsets; -1 while they are unknown."""

    remote: str
    task: int
    state: str
    """waiting, leased, doubtful or held"""
    position: int = -1
    expected: int = -1
    end: int = -1
    records: int = 0
    """Records copied so far by this mirror, earlier drivers included."""
    bytes: int = 0
    """Bytes copied since the driver started."""
    copied: int = 0
    """Records copied since the driver started, by its own tasks."""
    suppressed: int = 0
    """Records that were not sent again since the driver started: the target had them already."""
    filtered: int = 0
    """Records that transformations have dropped since the driver started."""
    skipped: int = 0
    """Records that failed in a transformation since the driver started, and are not copied."""
    failures: FailureCounts = FailureCounts()
    """What was logged and written about such records since the driver started."""
    active: int = 0
    """Records that are fetched and not acknowledged."""
    queued_bytes: int = 0
    """Their bytes."""
    newest_ms: int = -1
    """The largest timestamp that the target has acknowledged; -1 while it is unknown."""
    ages: RecordAges = RecordAges()
    """How old records were when they were fetched and acknowledged, since the driver started."""
    reason: str = ""
    """Why it is not copied; empty if it is."""
    halted: bool = False
    """Whether it waits for the operator. Other held partitions are retried."""
    delivery: str = ""
    """sequenced, exactly-once or at-least-once; empty before the first lease."""

    @property
    def lag(self) -> int | None:
        """Offsets still to copy; None while position or end is unknown.

        A log that ends before the position was created again or truncated: what is to be copied
        is then unknown too.
        """
        is_known = 0 <= self.position <= self.end
        return self.end - self.position if is_known else None


_VIEW_FIELDS = tuple(one.name for one in fields(PartitionView))


def total_lag(lags: Iterable[int | None]) -> int | None:
    """Return the sum; None if one of them is unknown."""
    total = 0
    for lag in lags:
        if lag is None:
            return None
        total += lag
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyEvent:
    """An event for the operator: a loss, a takeover, a foreign writer."""

    at_ms: int
    kind: str
    partition: str
    text: str
    lost_from: int = -1
    lost_to: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySnapshot:
    """The state by source partition, written `topic-partition`."""

    partitions: Mapping[str, PartitionView] = field(default_factory=dict)
    lanes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    events: tuple[CopyEvent, ...] = ()
    """The latest ones, oldest first; at most `MAX_EVENTS`."""
    lost_attempts: int = 0
    """Attempts of tasks that ended unexpectedly since the driver started."""
    commits: OffsetCommits = OffsetCommits()
    """The writes of source offsets since the driver started; none in exactly-once mode."""

    @property
    def records(self) -> int:
        """Records copied so far by this mirror, of all partitions."""
        return sum(view.records for view in self.partitions.values())

    @property
    def bytes(self) -> int:
        """Bytes copied since the driver started, of all partitions."""
        return sum(view.bytes for view in self.partitions.values())

    def while_stalled(self, reason: str) -> CopySnapshot:
        """Return the snapshot while no task copies: the source's ends are unknown.

        `reason` says why. A halted partition keeps its own reason and state.
        """
        return replace(
            self,
            partitions={
                key: view
                if view.halted
                else replace(view, state=_WAITING, end=-1, reason=reason or view.reason)
                for key, view in self.partitions.items()
            },
        )

    def while_waiting_for_slots(self, tasks: Collection[int], reason: str) -> CopySnapshot:
        """Return the snapshot with a reason for each partition that waits for one of the tasks."""
        return replace(
            self,
            partitions={
                key: replace(view, reason=reason)
                if view.state == _WAITING and view.task in tasks
                else view
                for key, view in self.partitions.items()
            },
        )

    def to_json(self, since: CopySnapshot | None = None) -> dict[str, Any]:
        """Return the changes since another snapshot, which the reader has too, as JSON values.

        So the status of a thousand idle partitions is small. An unchanged view is mostly the same
        object, which costs less to find than an equal one.
        """
        before = since or CopySnapshot()
        value: dict[str, Any] = {
            "partitions": {
                key: {name: getattr(view, name) for name in _VIEW_FIELDS}
                for key, view in self.partitions.items()
                if (known := before.partitions.get(key)) is not view and known != view
            },
            "gone": [key for key in before.partitions if key not in self.partitions],
            "lost_attempts": self.lost_attempts,
            "commits": self.commits,
        }
        if self.lanes != before.lanes:
            value["lanes"] = {topic: dict(counts) for topic, counts in self.lanes.items()}
        if self.events != before.events:
            kept = _known_events(before.events, self.events)
            value["kept_events"] = kept
            value["events"] = [asdict(event) for event in self.events[kept:]]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any], since: CopySnapshot | None = None) -> Self:
        """Read what `to_json` wrote, given the same `since`."""
        before = since or CopySnapshot()
        changed = {key: _read_view(view) for key, view in value["partitions"].items()}
        gone = set(value["gone"])
        kept = {key: view for key, view in before.partitions.items() if key not in gone}
        events = before.events
        if "events" in value:
            known_events = value["kept_events"]
            known = before.events[-known_events:] if known_events else ()
            events = (*known, *(CopyEvent(**event) for event in value["events"]))
        return cls(
            partitions=kept | changed,
            lanes=value.get("lanes", before.lanes),
            events=events,
            lost_attempts=value["lost_attempts"],
            commits=OffsetCommits(*value["commits"]),
        )


def _read_view(value: Mapping[str, Any]) -> PartitionView:
    failures = FailureCounts(*value["failures"])
    ages = RecordAges.from_json(value["ages"])
    return PartitionView(**{**value, "failures": failures, "ages": ages})


def _known_events(before: Sequence[CopyEvent], now: Sequence[CopyEvent]) -> int:
    """Return how many of the oldest events of `now` are the latest ones of `before`."""
    for number in range(min(len(before), len(now)), 0, -1):
        if before[-1] == now[number - 1] and before[-number] == now[0]:
            return number
    return 0


def starting_snapshot(job: CopyJob) -> CopySnapshot:
    """Return the snapshot of a job before its driver knows anything about its partitions."""
    return CopySnapshot(
        partitions={
            str(partition): PartitionView(
                remote=job.remote_topics[partition.topic],
                task=task,
                state=_WAITING,
                reason=SPARK_STARTS,
            )
            for partition, task in job.task_of_partition().items()
        }
    )
