"""The rights that workers and connectors need, by client. Pure.

A right is an operation on a resource. `topics` of the source are known only when the cluster has
listed them, so `ClientNeeds.selected_topics` names the operations on them apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sparkmirror.cluster.acls import AclOperation
from sparkmirror.config.client_configs import (
    ClientType,
    ClusterSide,
    ConnectorClient,
    client_properties,
)
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.heartbeat.heartbeat_config import MirrorHeartbeatConfig
from sparkmirror.connect.connectors.shared.mirror_connector_config import MirrorConnectorConfig
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.mirror.topics.filters import GroupFilter
from sparkmirror.mirror.topics.topic_selection import TopicSelection
from sparkmirror.transforms.configuration.error_settings import DeadLetterTopic, dead_letter_topic

READ, WRITE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE
DESCRIBE, ALTER = AclOperation.DESCRIBE, AclOperation.ALTER
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
PROBE_SUFFIX = "check"
WORKER_PRODUCER = "producer of the worker"
"""The end of the transactional id that a check asks about. No producer uses it."""


class ResourceType(StrEnum):
    """The kind of a resource, as `kafka-acls.sh` names it."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactional-id"


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """What a right is about. A prefix stands for every name that begins with it."""

    kind: ResourceType
    name: str
    is_prefix: bool = False

    def __str__(self) -> str:
        if self.kind is ResourceType.CLUSTER:
            return "the cluster"
        return f"{self.kind} {self.name}{'*' if self.is_prefix else ''}"


CLUSTER = Resource(ResourceType.CLUSTER, "kafka-cluster")


@dataclass(frozen=True, slots=True, order=True)
class NeededRight:
    """An operation on a resource, and what it is for."""

    resource: Resource
    operation: AclOperation
    purpose: str = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedTopics:
    """The topics of the source that a flow copies, and the operations on them or their copies."""

    selection: TopicSelection
    operations: tuple[AclOperation, ...]
    are_remote: bool
    """Whether the operations are on the remote topics, at the target."""
    purpose: str
    named: tuple[str, ...] = ()
    """Selected topics that the config names in full. A broker may hide them from the principal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedGroups:
    """The groups of the source whose offsets a flow translates, and the operations on them."""

    source: str
    """The alias of the cluster that lists the groups."""
    group_filter: GroupFilter
    operations: tuple[AclOperation, ...]
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientNeeds:
    """One client: the cluster it connects to, and what it needs there."""

    cluster: str
    description: str
    properties: Mapping[str, str] = field(repr=False)
    rights: tuple[NeededRight, ...] = ()
    selected_topics: tuple[SelectedTopics, ...] = ()
    selected_groups: tuple[SelectedGroups, ...] = ()
    uses_worker_client: bool = False
    """Whether the worker's keys configure the client, not the connector's."""


def topic_rights(
    name: str, operations: Iterable[AclOperation], purpose: str
) -> tuple[NeededRight, ...]:
    """Return rights on one topic."""
    resource = Resource(ResourceType.TOPIC, name)
    return tuple(NeededRight(resource, operation, purpose) for operation in operations)


def group_rights(
    name: str, operations: Iterable[AclOperation], purpose: str
) -> tuple[NeededRight, ...]:
    """Return rights on one group."""
    resource = Resource(ResourceType.GROUP, name)
    return tuple(NeededRight(resource, operation, purpose) for operation in operations)


def worker_needs(
    cluster: str, worker: WorkerClientConfig, topics: Mapping[str, str]
) -> ClientNeeds:
    """Return the needs of a worker's own clients. `topics` has its three topics by purpose."""
    operations = (CREATE, DESCRIBE, DESCRIBE_CONFIGS, READ, WRITE)
    rights = [
        right
        for purpose, name in topics.items()
        for right in topic_rights(name, operations, purpose)
    ]
    rights += group_rights(worker.group_id, (READ, DESCRIBE), "notices a second worker")
    if worker.is_exactly_once:
        leader = Resource(ResourceType.TRANSACTIONAL_ID, f"connect-cluster-{worker.group_id}")
        rights += [NeededRight(leader, op, "fences other leaders") for op in (WRITE, DESCRIBE)]
    return ClientNeeds(
        cluster=cluster,
        description="worker",
        properties=worker.client_properties(),
        rights=tuple(rights),
    )


def source_needs(config: Mapping[str, str], worker: WorkerClientConfig) -> list[ClientNeeds]:
    """Return the needs of a source connector's clients. Raises ConfigError."""
    parsed = MirrorSourceConfig.parse(config)
    clients = _ConnectorClients(parsed.shared, config)

    words = (word.strip() for word in config.get("topics", "").split(","))
    named = tuple(
        word
        for word in words
        if _PLAIN_NAME.fullmatch(word) and parsed.selection.should_replicate_topic(word)
    )

    def selected(
        *operations: AclOperation, at: ClusterSide, purpose: str
    ) -> tuple[SelectedTopics, ...]:
        return (
            SelectedTopics(
                selection=parsed.selection,
                operations=operations,
                are_remote=at is ClusterSide.TARGET,
                purpose=purpose,
                named=named,
            ),
        )

    letters = dead_letter_topic(config)
    syncs = parsed.sync_configs_s is not None
    acls = parsed.sync_acls_s is not None
    needs = [
        clients.needs(
            ClusterSide.SOURCE,
            ClientType.ADMIN,
            rights=(NeededRight(CLUSTER, DESCRIBE, "reads ACLs"),) if acls else (),
            selected=selected(
                DESCRIBE, DESCRIBE_CONFIGS, at=ClusterSide.SOURCE, purpose="lists topics"
            ),
        ),
        clients.needs(
            ClusterSide.SOURCE,
            ClientType.CONSUMER,
            selected=selected(READ, DESCRIBE, at=ClusterSide.SOURCE, purpose="fetches records"),
        ),
        clients.needs(
            ClusterSide.TARGET,
            ClientType.ADMIN,
            rights=(
                *((NeededRight(CLUSTER, ALTER, "creates ACLs"),) if acls else ()),
                *_dead_letter_rights(letters, CREATE, DESCRIBE),
            ),
            selected=selected(
                *(CREATE, DESCRIBE, DESCRIBE_CONFIGS, ALTER, *((ALTER_CONFIGS,) if syncs else ())),
                at=ClusterSide.TARGET,
                purpose="creates remote topics and their partitions",
            ),
        ),
    ]
    if parsed.emits_offset_syncs:
        rights = topic_rights(
            parsed.offset_syncs_topic.name, (CREATE, DESCRIBE, WRITE), "writes offset syncs"
        )
        side = parsed.offset_syncs_side
        needs.append(clients.needs(side, ClientType.PRODUCER, rights=rights))
    fence = Resource(
        ResourceType.TRANSACTIONAL_ID, f"{worker.group_id}-{parsed.shared.name}-", is_prefix=True
    )
    producer = clients.worker_producer(
        worker,
        rights=(
            *(NeededRight(fence, op, "fences older tasks") for op in (WRITE, DESCRIBE)),
            *_dead_letter_rights(letters, WRITE, DESCRIBE),
        ),
    )
    purpose = "writes records, and reads the last ones after a failure"
    needs.append(
        replace(
            producer,
            selected_topics=selected(WRITE, READ, DESCRIBE, at=ClusterSide.TARGET, purpose=purpose),
        )
    )
    return needs


def _dead_letter_rights(
    topic: DeadLetterTopic | None, *operations: AclOperation
) -> tuple[NeededRight, ...]:
    return topic_rights(topic.name, operations, "writes dead letters") if topic else ()


def checkpoint_needs(config: Mapping[str, str], worker: WorkerClientConfig) -> list[ClientNeeds]:
    """Return the needs of a checkpoint connector's clients. Raises ConfigError."""
    parsed = MirrorCheckpointConfig.parse(config)
    clients = _ConnectorClients(parsed.shared, config)
    checkpoints = parsed.checkpoints_topic.name

    def groups(*operations: AclOperation, purpose: str) -> tuple[SelectedGroups, ...]:
        return (
            SelectedGroups(
                source=parsed.shared.flow.source,
                group_filter=parsed.group_filter,
                operations=operations,
                purpose=purpose,
            ),
        )

    source = clients.needs(ClusterSide.SOURCE, ClientType.ADMIN)
    target = clients.needs(
        ClusterSide.TARGET,
        ClientType.ADMIN,
        rights=topic_rights(checkpoints, (CREATE, DESCRIBE), "creates the checkpoints topic"),
    )
    if parsed.sync_group_offsets_s is not None:
        written = groups(READ, DESCRIBE, purpose="writes the offsets of groups")
        target = replace(target, selected_groups=written)
    return [
        replace(source, selected_groups=groups(DESCRIBE, purpose="reads the offsets of groups")),
        target,
        clients.needs(
            ClusterSide.TARGET,
            ClientType.CONSUMER,
            rights=topic_rights(checkpoints, (READ, DESCRIBE), "reads its last checkpoints"),
        ),
        clients.needs(
            parsed.offset_syncs_side,
            ClientType.CONSUMER,
            rights=topic_rights(
                parsed.offset_syncs_topic.name, (READ, DESCRIBE), "reads offset syncs"
            ),
        ),
        clients.worker_producer(
            worker, rights=topic_rights(checkpoints, (WRITE, DESCRIBE), "writes checkpoints")
        ),
    ]


def heartbeat_needs(config: Mapping[str, str], worker: WorkerClientConfig) -> list[ClientNeeds]:
    """Return the needs of a heartbeat connector's clients. Raises ConfigError."""
    parsed = MirrorHeartbeatConfig.parse(config)
    clients = _ConnectorClients(parsed.shared, config)
    heartbeats = parsed.heartbeats_topic.name
    return [
        clients.needs(
            ClusterSide.TARGET,
            ClientType.ADMIN,
            rights=topic_rights(heartbeats, (CREATE, DESCRIBE), "creates the heartbeats topic"),
        ),
        clients.worker_producer(
            worker, rights=topic_rights(heartbeats, (WRITE, DESCRIBE), "writes heartbeats")
        ),
    ]


Needs = Callable[[Mapping[str, str], WorkerClientConfig], list[ClientNeeds]]


class _ConnectorClients:
    """Builds the needs of the clients of one connector."""

    def __init__(self, shared: MirrorConnectorConfig, config: Mapping[str, str]) -> None:
        self._shared = shared
        self._config = config

    def needs(
        self,
        side: ClusterSide,
        client_type: ClientType,
        *,
        rights: tuple[NeededRight, ...] = (),
        selected: tuple[SelectedTopics, ...] = (),
    ) -> ClientNeeds:
        """Return the needs of a client that the connector's own keys configure."""
        return ClientNeeds(
            cluster=self._shared.cluster_alias(side),
            description=f"{self._shared.flow} {self._shared.name}: {side} {client_type}",
            properties=client_properties(self._config, ConnectorClient(side, client_type)),
            rights=rights,
            selected_topics=selected,
        )

    def worker_producer(
        self, worker: WorkerClientConfig, *, rights: tuple[NeededRight, ...]
    ) -> ClientNeeds:
        """Return the needs of the worker's producer for the connector's tasks."""
        return ClientNeeds(
            cluster=self._shared.flow.target,
            description=f"{self._shared.flow} {self._shared.name}: {WORKER_PRODUCER}",
            properties=worker.producer_properties(self._config),
            rights=rights,
            uses_worker_client=True,
        )
