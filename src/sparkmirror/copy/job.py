"""A job: what one source connector copies, said once, as plain values.

Made by whoever plans (the `copy` command, later the source connector), read by the driver. Travels
as JSON, by ways that keep secrets (`settings`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from sparkmirror.copy.delivery import COMMIT_EVERY_S, TRANSACTION_TIMEOUT_S, Delivery
from sparkmirror.copy.settings import Settings
from sparkmirror.model import TopicPartition


class OnLoss(enum.StrEnum):
    """What to do when the source no longer holds what was to be copied next."""

    HALT = "halt"
    """Copy nothing more of that partition until somebody decides."""
    SKIP = "skip"
    """Go on with what is there; the lost range stays on record."""
    RESTART = "restart"
    """Copy the partition from its beginning again."""


class StartAt(enum.StrEnum):
    """Where to begin with a partition that the ledger does not know."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where to begin: at an end, at a time, or at given offsets (others begin at the earliest)."""

    at: StartAt = StartAt.EARLIEST
    timestamp_ms: int = 0
    offsets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncsTopic:
    """Where offset syncs go, and how densely. `client` holds secrets."""

    name: str
    cluster: str
    """The alias of the cluster that holds the topic."""
    client: Mapping[str, str] = field(repr=False)
    offset_lag_max: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One source connector's work."""

    connector: str
    group_id: str
    settings: Settings
    offsets_topic: str
    remote_topics: Mapping[str, str]
    """Source topic → remote topic."""
    tasks: tuple[tuple[TopicPartition, ...], ...]
    """The partitions of each task."""
    start: Start = Start()
    on_loss: OnLoss = OnLoss.HALT
    delivery: Delivery = Delivery.SEQUENCED
    commit_every_s: float = COMMIT_EVERY_S
    """How often transactions are committed, in exactly-once mode."""
    transaction_timeout_s: float = TRANSACTION_TIMEOUT_S
    tasks_before: int = 0
    """How many tasks the connector has had, if somebody remembers: all of them are fenced."""
    flush_every_s: float = 10.0
    silence_s: float = 10.0
    """A task that does not report for so long loses its partitions."""
    syncs: SyncsTopic | None = None
    """Where offset syncs go, if they are wanted."""
    offsets_client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The way to the cluster that holds the offsets topic; empty means: the target."""

    @property
    def is_exactly_once(self) -> bool:
        """Whether it copies in transactions."""
        return self.delivery is Delivery.EXACTLY_ONCE

    def remote(self, partition: TopicPartition) -> TopicPartition:
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
        fields["settings"] = Settings.from_json(fields["settings"])
        fields["tasks"] = tuple(
            tuple(TopicPartition(*partition) for partition in task) for task in fields["tasks"]
        )
        start = dict(fields["start"])
        fields["start"] = Start(**(start | {"at": StartAt(start["at"])}))
        fields["on_loss"] = OnLoss(fields["on_loss"])
        fields["delivery"] = Delivery(fields["delivery"])
        fields["syncs"] = SyncsTopic(**fields["syncs"]) if fields.get("syncs") else None
        return cls(**fields)
