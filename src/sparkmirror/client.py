"""For people's failover code: where a cluster's data comes from, and where its groups go on.

    with MirrorClient({"bootstrap.servers": "backup:9092"}) as backup:
        if "primary" in backup.upstream_clusters():
            offsets = backup.remote_consumer_offsets("billing", "primary")

What Java's MirrorClient answers, answered alike. The properties are those of any Kafka client, plus
`replication.policy.*`; `admin.*` and `consumer.*` overrule them for one kind of client. Looks at
topic names and at checkpoints, nothing else, so it works whoever mirrors: Java or we.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.topic_contents import read_topic
from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.tables.clients import CLIENT_SECURITY_NAMES, MIRROR_CLIENT
from sparkmirror.errors import ConfigError, RecordError, TopicMissing
from sparkmirror.javaregex.pattern import compile_pattern_list
from sparkmirror.mirror.offsets.records import Checkpoint, RecordBytes
from sparkmirror.mirror.topics import topology
from sparkmirror.mirror.topics.replication_policy import (
    PolicyFactory,
    ReplicationPolicy,
    ReplicationPolicyConfig,
    create_policy,
)
from sparkmirror.model import OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

TIMEOUT_S = 30.0
CLUSTER = "cluster"
"""What errors call the cluster: the client knows no alias of it."""
_POLICY = "replication.policy.class"
_SEPARATOR = "replication.policy.separator"
_INTERNAL = "replication.policy.internal.topic.separator.enabled"

Offsets = dict[TopicPartition, OffsetAndMetadata]
"""Where a group goes on, by remote partition."""


class MirrorClient:
    """Answers questions about one cluster. Raises ConfigError and ClusterErrors. Close it."""

    def __init__(self, properties: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> None:
        self._properties = dict(properties)
        self._timeout_s = timeout_s
        self._policy = _policy(self._properties)
        self._admin = Admin(self._access("admin"), timeout_s)

    @property
    def replication_policy(self) -> ReplicationPolicy:
        """The policy that names are read with."""
        return self._policy

    def heartbeat_topics(self) -> frozenset[str]:
        """Name the heartbeats topics: the cluster's own, and copies of others'."""
        return topology.heartbeat_topics(self._policy, self._topics())

    def checkpoint_topics(self) -> frozenset[str]:
        """Name the topics that hold checkpoints of upstream groups."""
        return topology.checkpoint_topics(self._policy, self._topics())

    def upstream_clusters(self) -> frozenset[str]:
        """Name the clusters whose heartbeats arrive here, over however many hops."""
        return topology.upstream_clusters(self._policy, self._topics())

    def replication_hops(self, upstream: str) -> int:
        """Count the hops of the shortest way from a cluster to here; -1 if there is none."""
        return topology.replication_hops(self._policy, self._topics(), upstream)

    def remote_topics(self, source: str | None = None) -> frozenset[str]:
        """Name the topics that are copies; with `source`, those that came directly from there."""
        return topology.remote_topics(self._policy, self._topics(), source)

    def remote_consumer_offsets(
        self, group: str, upstream: str, timeout_s: float | None = None
    ) -> Offsets:
        """Translate where a group of an upstream cluster goes on here.

        Partitions without a checkpoint are not in the answer; a group without any gets none.
        """
        return self._offsets(upstream, timeout_s).get(group, {})

    def remote_consumer_offsets_matching(
        self, pattern: str, upstream: str, timeout_s: float | None = None
    ) -> dict[str, Offsets]:
        """Do the same for all groups whose id matches a pattern of Java's as a whole."""
        wanted = compile_pattern_list([pattern])
        offsets = self._offsets(upstream, timeout_s)
        return {group: found for group, found in offsets.items() if wanted.matches(group)}

    def close(self) -> None:
        """Hang up."""
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _topics(self) -> Iterable[str]:
        return [
            name for name, topic in self._admin.describe_topics().items() if not topic.is_internal
        ]

    def _offsets(self, upstream: str, timeout_s: float | None) -> dict[str, Offsets]:
        """Read all checkpoints of an upstream cluster's groups; the latest of each wins."""
        topic = self._policy.checkpoints_topic(upstream)
        found: dict[str, Offsets] = {}
        try:
            records = read_topic(self._access("consumer"), topic, timeout_s or self._timeout_s)
        except TopicMissing:
            return {}
        for record in records:
            if record.partition != 0 or record.value is None:
                continue
            try:
                checkpoint = Checkpoint.decode(RecordBytes(record.key, record.value))
            except RecordError as error:
                log.info("Ignored a record of %s at offset %d: %s", topic, record.offset, error)
                continue
            found.setdefault(checkpoint.group, {})[checkpoint.partition] = OffsetAndMetadata(
                checkpoint.downstream, checkpoint.metadata
            )
        return found

    def _access(self, kind: str) -> ClusterAccess:
        properties = {
            name: self._properties.get(f"{kind}.{name}", self._properties.get(name))
            for name in CLIENT_SECURITY_NAMES
        }
        given = {name: value for name, value in properties.items() if value is not None}
        return ClusterAccess.from_properties(CLUSTER, given)


def translate_offsets(
    properties: Mapping[str, str], upstream: str, group: str, timeout_s: float = TIMEOUT_S
) -> Offsets:
    """Translate where a group of an upstream cluster goes on, in one call."""
    with MirrorClient(properties, timeout_s) as client:
        return client.remote_consumer_offsets(group, upstream)


def replication_hops(properties: Mapping[str, str], upstream: str) -> int:
    """Count the hops from an upstream cluster, in one call; -1 if there is no way."""
    with MirrorClient(properties) as client:
        return client.replication_hops(upstream)


def upstream_clusters(properties: Mapping[str, str]) -> frozenset[str]:
    """Name the clusters whose heartbeats arrive, in one call."""
    with MirrorClient(properties) as client:
        return client.upstream_clusters()


def heartbeat_topics(properties: Mapping[str, str]) -> frozenset[str]:
    """Name the heartbeats topics, in one call."""
    with MirrorClient(properties) as client:
        return client.heartbeat_topics()


def checkpoint_topics(properties: Mapping[str, str]) -> frozenset[str]:
    """Name the checkpoint topics, in one call."""
    with MirrorClient(properties) as client:
        return client.checkpoint_topics()


def _policy(properties: Mapping[str, str]) -> ReplicationPolicy:
    values = MIRROR_CLIENT.parse(properties, _class_name)
    name, flag = values[_POLICY], values[_INTERNAL]
    assert isinstance(name, str)
    said = ReplicationPolicyConfig(
        source_alias=properties.get("source.cluster.alias"),
        separator=properties.get(_SEPARATOR),
        internal_separator_enabled=flag is not False,
        originals=properties,
    )
    return create_policy(name, said, _load)


def _class_name(name: str) -> str | None:
    return name if ":" in name else resolve_class(name)


def _load(name: str) -> PolicyFactory:
    try:
        factory: PolicyFactory = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError.of(_POLICY, f"{_POLICY}: {name} cannot be loaded: {error}") from error
    return factory
