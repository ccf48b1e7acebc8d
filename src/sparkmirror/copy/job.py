"""A copy job: everything that one source connector copies, as plain values.

The `copy` command or a source connector makes the job, the driver runs it. It travels as JSON and
may have secrets (`settings`).

A job whose records of one topic may go to different topics copies in transactions. For a chain of
transformations the worker says so when it makes the job. What a query does only Spark can say, so
the driver finds it out when the job starts (`routing_job`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from sparkmirror.config.tables.transform_additions import DEADLETTERQUEUE_TOPIC
from sparkmirror.copy.delivery import (
    DEFAULT_COMMIT_INTERVAL_S,
    DEFAULT_TRANSACTION_TIMEOUT_S,
    DeliveryMode,
)
from sparkmirror.copy.settings import CopySettings
from sparkmirror.errors import ConfigError
from sparkmirror.model import TopicPartition
from sparkmirror.transforms.configuration.error_settings import dead_letter_topic
from sparkmirror.transforms.spark_query import spark_query

QUERY_WITH_DEAD_LETTERS = (
    f"{DEADLETTERQUEUE_TOPIC} is not supported with a query that computes topic, which may send"
    " records of one topic to different topics: leave one of them out"
)


class DataLossPolicy(enum.StrEnum):
    """What to do when the source no longer has the next record to copy."""

    HALT = "halt"
    """Copy nothing more of the partition until the operator decides."""
    SKIP = "skip"
    """Continue at the first available record; an event names the lost range."""
    RESTART = "restart"
    """Copy the partition again from its beginning."""


class ExistingRecordsPolicy(enum.StrEnum):
    """What to do with a partition without a ledger entry whose remote partition holds records."""

    ADOPT = "adopt"
    """Search the last of them at the source and go on behind it."""
    APPEND = "append"
    """Start where the job says and append behind them."""
    HALT = "halt"
    """Copy nothing of the partition until the operator decides."""


class StartMode(enum.StrEnum):
    """Where to start with a partition that has no ledger entry."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPosition:
    """Where to start. Partitions without an entry in `offsets` start at the earliest offset."""

    at: StartMode = StartMode.EARLIEST
    timestamp_ms: int = 0
    offsets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSyncsTopic:
    """The offset-syncs topic, its cluster, and offset.lag.max. `client` has secrets."""

    name: str
    cluster: str
    """The alias of the cluster that has the topic."""
    client: Mapping[str, str] = field(repr=False)
    offset_lag_max: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyJob:
    """What one source connector copies, and how."""

    connector: str
    group_id: str
    settings: CopySettings
    offsets_topic: str
    remote_topics: Mapping[str, str]
    """Source topic → remote topic."""
    tasks: Mapping[int, tuple[TopicPartition, ...]]
    """The partitions of each task that this worker runs, by task number."""
    task_count: int
    """How many tasks the connector has, on all workers together."""
    start: StartPosition = StartPosition()
    on_loss: DataLossPolicy = DataLossPolicy.HALT
    on_existing: ExistingRecordsPolicy = ExistingRecordsPolicy.ADOPT
    delivery: DeliveryMode = DeliveryMode.SEQUENCED
    commit_interval_s: float = DEFAULT_COMMIT_INTERVAL_S
    """Seconds between commits in exactly-once mode."""
    transaction_timeout_s: float = DEFAULT_TRANSACTION_TIMEOUT_S
    previous_task_count: int = 0
    """How many tasks the connector had, if known: the driver fences all of them."""
    flush_interval_s: float = 10.0
    task_timeout_s: float = 10.0
    """A task that sends no report for so long loses its leases."""
    is_shared: bool = False
    """Whether workers of a group may run tasks of the connector, each with its own conductor. The
    conductor then needs its worker's membership (`copy.driver.sharing.worker_group_membership`)."""
    syncs: OffsetSyncsTopic | None = None
    """Where offset syncs go; None for no offset syncs."""
    offsets_client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Client properties of the cluster with the offsets topic; empty means the target."""
    policy_topics: Mapping[str, str] = field(default_factory=dict)
    """Source topic → the name that the replication policy gives, where transformations route the
    remote topic to another name."""
    untransformed_topics: tuple[str, ...] = ()
    """The source topics whose records are copied unchanged, whatever the transformations."""

    def __post_init__(self) -> None:
        assert all(0 <= task < self.task_count for task in self.tasks), "no task of the connector"

    @property
    def is_exactly_once(self) -> bool:
        """Whether the job copies in transactions."""
        return self.delivery is DeliveryMode.EXACTLY_ONCE

    def remote_partition(self, partition: TopicPartition) -> TopicPartition:
        """Return the remote partition of a source partition. It has the same number."""
        return TopicPartition(self.remote_topics[partition.topic], partition.partition)

    def chain_of(self, topic: str) -> str:
        """Return the fingerprint of the transformations of a source topic; empty for none."""
        return "" if topic in self.untransformed_topics else self.settings.chain

    @property
    def flow(self) -> str:
        """The flow of the job, as MirrorMaker 2 writes it: `source->target`."""
        return f"{self.settings.source_alias}->{self.settings.target_alias}"

    @property
    def name(self) -> str:
        """Flow and connector: unique among the jobs of a worker, also in dedicated mode."""
        return f"{self.flow}.{self.connector}"

    def task_of_partition(self) -> dict[TopicPartition, int]:
        """Return the task number of each source partition."""
        return {partition: task for task, each in self.tasks.items() for partition in each}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        value = asdict(self)
        value["settings"] = self.settings.to_json()
        value["tasks"] = [
            [task, [list(partition) for partition in each]] for task, each in self.tasks.items()
        ]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        fields = dict(value)
        fields["settings"] = CopySettings.from_json(fields["settings"])
        fields["tasks"] = {
            task: tuple(TopicPartition(*partition) for partition in each)
            for task, each in fields["tasks"]
        }
        fields["untransformed_topics"] = tuple(fields.get("untransformed_topics", ()))
        start = dict(fields["start"])
        fields["start"] = StartPosition(**(start | {"at": StartMode(start["at"])}))
        fields["on_loss"] = DataLossPolicy(fields["on_loss"])
        fields["on_existing"] = ExistingRecordsPolicy(fields["on_existing"])
        fields["delivery"] = DeliveryMode(fields["delivery"])
        fields["syncs"] = OffsetSyncsTopic(**fields["syncs"]) if fields.get("syncs") else None
        return cls(**fields)


def routing_job(job: CopyJob) -> CopyJob:
    """Return the job in transactions, whatever the worker's setting is.

    Raises ConfigError if the job cannot send records of one topic to different topics.
    """
    if spark_query(job.settings.transforms) and dead_letter_topic(job.settings.transforms):
        raise ConfigError.of(DEADLETTERQUEUE_TOPIC, QUERY_WITH_DEAD_LETTERS)
    if job.is_exactly_once:
        return job
    _require_offsets_on_target(job)
    return replace(job, delivery=DeliveryMode.EXACTLY_ONCE)


def may_copy_in_transactions(job: CopyJob) -> bool:
    """Whether the driver may have to copy the job in transactions, as far as the worker knows."""
    return job.is_exactly_once or spark_query(job.settings.transforms) is not None


def _require_offsets_on_target(job: CopyJob) -> None:
    """Raise ConfigError if the offsets topic is not on the target: one transaction has both."""
    servers = [
        {server.strip() for server in client.get("bootstrap.servers", "").split(",")}
        for client in (job.offsets_client or job.settings.target, job.settings.target)
    ]
    if servers[0].isdisjoint(servers[1]):
        query = spark_query(job.settings.transforms)
        raise ConfigError.of(
            query.key if query else "transforms",
            "transforms that send records of one topic to different topics need the source offsets"
            f" in the target cluster {job.settings.target_alias}, in one transaction with the"
            " records: set offsets.storage.topic of the connector to a topic there, or use a worker"
            " whose bootstrap.servers name that cluster",
        )
