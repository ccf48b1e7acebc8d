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
    reason: str = ""

    @property
    def lag(self) -> int:
        """Offsets still to be copied; 0 where the end is not known yet."""
        return max(self.end - self.position, 0) if self.end >= 0 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something an operator should know of: a loss, a takeover, a foreign writer."""

    at_ms: int
    kind: str
    partition: str
    text: str
    lost_from: int = -1
    lost_to: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything, by source partition written `topic-partition`."""

    partitions: Mapping[str, PartitionView] = field(default_factory=dict)
    records: int = 0
    """Copied since the driver began."""
    bytes: int = 0
    lanes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    """The latest ones, oldest first."""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        fields = dict(value)
        fields["partitions"] = {
            key: PartitionView(**view) for key, view in fields["partitions"].items()
        }
        fields["events"] = tuple(Event(**event) for event in fields["events"])
        return cls(**fields)
