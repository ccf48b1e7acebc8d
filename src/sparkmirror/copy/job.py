"""A job: what one source connector copies, said once, as plain values.

Made by whoever plans (the `copy` command, later the source connector), read by the driver. Travels
as JSON, by ways that keep secrets (`settings`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from sparkmirror.copy.delivery import (
    DEFAULT_COMMIT_INTERVAL_S,
    DEFAULT_TRANSACTION_TIMEOUT_S,
    DeliveryMode,
)
from sparkmirror.copy.settings import CopySettings
from sparkmirror.model import TopicPartition


class DataLossPolicy(enum.StrEnum):
    """What to do when the source no longer holds what was to be copied next."""

    HALT = "halt"
    """Copy nothing more of that partition until somebody decides."""
    SKIP = "skip"
    """Go on with what is there; the lost range stays on record."""
    RESTART = "restart"
    """Copy the partition from its beginning again."""


class StartMode(enum.StrEnum):
    """Where to begin with a partition that the ledger does not know."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPosition:
    """Where to begin: at an end, at a time, or at given offsets (others begin at the earliest)."""

    at: StartMode = StartMode.EARLIEST
    timestamp_ms: int = 0
    offsets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSyncsTopic:
    """Where offset syncs go, and how densely. `client` holds secrets."""

    name: str
    cluster: str
    """The alias of the cluster that holds the topic."""
    client: Mapping[str, str] = field(repr=False)
    offset_lag_max: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyJob:
    """One source connector's work."""

    connector: str
    group_id: str
    settings: CopySettings
    offsets_topic: str
    remote_topics: Mapping[str, str]
    """Source topic → remote topic."""
    tasks: tuple[tuple[TopicPartition, ...], ...]
    """The partitions of each task."""
    start: StartPosition = StartPosition()
    on_loss: DataLossPolicy = DataLossPolicy.HALT
    delivery: DeliveryMode = DeliveryMode.SEQUENCED
    commit_interval_s: float = DEFAULT_COMMIT_INTERVAL_S
    """How often transactions are committed, in exactly-once mode."""
    transaction_timeout_s: float = DEFAULT_TRANSACTION_TIMEOUT_S
    previous_task_count: int = 0
    """How many tasks the connector has had, if somebody remembers: all of them are fenced."""
    flush_interval_s: float = 10.0
    task_timeout_s: float = 10.0
    """A task that does not report for so long loses its partitions."""
    syncs: OffsetSyncsTopic | None = None
    """Where offset syncs go, if they are wanted."""
    offsets_client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The way to the cluster that holds the offsets topic; empty means: the target."""

    @property
    def is_exactly_once(self) -> bool:
        """Whether it copies in transactions."""
        return self.delivery is DeliveryMode.EXACTLY_ONCE

    def remote_partition(self, partition: TopicPartition) -> TopicPartition:
        """Where a source partition is copied to: the same number of the remote topic."""
        return TopicPartition(self.remote_topics[partition.topic], partition.partition)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        value = asdict(self)
        value["settings"] = self.settings.to_json()
        value["tasks"] = [[list(partition) for partition in task] for task in self.tasks]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        fields = dict(value)
        fields["settings"] = CopySettings.from_json(fields["settings"])
        fields["tasks"] = tuple(
            tuple(TopicPartition(*partition) for partition in task) for task in fields["tasks"]
        )
        start = dict(fields["start"])
        fields["start"] = StartPosition(**(start | {"at": StartMode(start["at"])}))
        fields["on_loss"] = DataLossPolicy(fields["on_loss"])
        fields["delivery"] = DeliveryMode(fields["delivery"])
        fields["syncs"] = OffsetSyncsTopic(**fields["syncs"]) if fields.get("syncs") else None
        return cls(**fields)
