"""Where everything stands: what the driver tells the world once a second. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One source partition. Offsets are the next ones; `end` is -1 until it is known."""

    remote: str
    task: int
    state: str
    """waiting, leased, doubtful or held"""
    position: int = -1
    expected: int = -1
    end: int = -1
    records: int = 0
    """Copied by this mirror so far, by drivers before this one too."""
    bytes: int = 0
    """Copied since the driver began."""
    reason: str = ""
    """Why it does not move, if it does not."""
    halted: bool = False
    """Whether it stays so until somebody decides; whatever else is held is tried again."""

    @property
    def lag(self) -> int:
        """Offsets still to be copied; 0 where the end is not known yet."""
        return max(self.end - self.position, 0) if self.end >= 0 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyEvent:
    """Something an operator should know of: a loss, a takeover, a foreign writer."""

    at_ms: int
    kind: str
    partition: str
    text: str
    lost_from: int = -1
    lost_to: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySnapshot:
    """Everything, by source partition written `topic-partition`."""

    partitions: Mapping[str, PartitionView] = field(default_factory=dict)
    lanes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    events: tuple[CopyEvent, ...] = ()
    """The latest ones, oldest first."""

    @property
    def records(self) -> int:
        """Copied by this mirror so far, of all partitions."""
        return sum(view.records for view in self.partitions.values())

    @property
    def bytes(self) -> int:
        """Copied since the driver began, of all partitions."""
        return sum(view.bytes for view in self.partitions.values())

    def to_json(self, since: CopySnapshot | None = None) -> dict[str, Any]:
        """As plain JSON values: what has changed since another one, that the reader has too.

        A mirror of a thousand quiet partitions has next to nothing to say.
        """
        before = since or CopySnapshot()
        value: dict[str, Any] = {
            "partitions": {
                key: asdict(view)
                for key, view in self.partitions.items()
                if before.partitions.get(key) != view
            },
            "gone": [key for key in before.partitions if key not in self.partitions],
        }
        if self.lanes != before.lanes:
            value["lanes"] = {topic: dict(counts) for topic, counts in self.lanes.items()}
        if self.events != before.events:
            value["events"] = [asdict(event) for event in self.events]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any], since: CopySnapshot | None = None) -> Self:
        """Read what `to_json` wrote, given the same `since`."""
        before = since or CopySnapshot()
        changed = {key: PartitionView(**view) for key, view in value["partitions"].items()}
        gone = set(value["gone"])
        kept = {key: view for key, view in before.partitions.items() if key not in gone}
        told = value.get("events")
        return cls(
            partitions=kept | changed,
            lanes=value.get("lanes", before.lanes),
            events=before.events if told is None else tuple(CopyEvent(**event) for event in told),
        )
