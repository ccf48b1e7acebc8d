"""The client for failover code: where a cluster's data comes from, and where its groups continue.

    with MirrorClient({"bootstrap.servers": "backup:9092"}) as backup:
        if "primary" in backup.upstream_clusters():
            offsets = backup.remote_consumer_offsets("billing", "primary")

Gives the same answers as Java's MirrorClient. The properties are those of any Kafka client, plus
`replication.policy.*`; `admin.*` and `consumer.*` override them for one kind of client. It reads
only topic names and checkpoints, so it works with sparkmirror and with Java MirrorMaker 2.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Self

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.produce_and_consume import read_topic
from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.tables.client.common_client_configs import (
    CLIENT_SECURITY_NAMES,
    MIRROR_CLIENT,
)
from sparkmirror.errors import ConfigError, RecordError, TopicMissing
from sparkmirror.javaregex.pattern import compile_pattern_list
from sparkmirror.mirror.offsets.records import Checkpoint, RecordBytes
from sparkmirror.mirror.topics import mirror_client_topics
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
"""The name of the cluster in errors: the client knows no alias."""
_POLICY = "replication.policy.class"
_SEPARATOR = "replication.policy.separator"
_INTERNAL = "replication.policy.internal.topic.separator.enabled"

Offsets = dict[TopicPartition, OffsetAndMetadata]
"""Where a group continues, by remote partition."""


class MirrorClient:
    """Answers questions about one cluster. Raises ConfigError and ClusterError. Close it."""

    def __init__(self, properties: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> None:
        self._properties = dict(properties)
        self._timeout_s = timeout_s
        self._policy = _policy(self._properties)
        self._admin = Admin(self._access("admin"), timeout_s)

    @property
    def replication_policy(self) -> ReplicationPolicy:
        """The policy that parses topic names."""
        return self._policy

    def heartbeat_topics(self) -> frozenset[str]:
        """The heartbeats topics: the cluster's own, and copies from upstream clusters."""
        return mirror_client_topics.heartbeat_topics(self._policy, self._topics())

    def checkpoint_topics(self) -> frozenset[str]:
        """The topics with checkpoints of upstream groups."""
        return mirror_client_topics.checkpoint_topics(self._policy, self._topics())

    def upstream_clusters(self) -> frozenset[str]:
        """The clusters whose heartbeats arrive here, over any number of hops."""
        return mirror_client_topics.upstream_clusters(self._policy, self._topics())

    def replication_hops(self, upstream: str) -> int:
        """The number of hops on the shortest path from a cluster to here; -1 if there is none."""
        return mirror_client_topics.replication_hops(self._policy, self._topics(), upstream)

    def remote_topics(self, source: str | None = None) -> frozenset[str]:
        """The remote topics; with `source`, only those copied directly from there."""
        return mirror_client_topics.remote_topics(self._policy, self._topics(), source)

    def remote_consumer_offsets(
        self, group: str, upstream: str, timeout_s: float | None = None
    ) -> Offsets:
        """Where a group of an upstream cluster continues here.

        Contains only partitions with a checkpoint; empty for a group without checkpoints.
        """
        return self._offsets(upstream, timeout_s).get(group, {})

    def remote_consumer_offsets_matching(
        self, pattern: str, upstream: str, timeout_s: float | None = None
    ) -> dict[str, Offsets]:
        """The same for all groups whose whole id matches a Java pattern."""
        wanted = compile_pattern_list([pattern])
        offsets = self._offsets(upstream, timeout_s)
        return {group: found for group, found in offsets.items() if wanted.matches(group)}

    def close(self) -> None:
        """Close the connections."""
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _topics(self) -> Iterable[str]:
        return [
            name for name, topic in self._admin.describe_topics().items() if not topic.is_internal
        ]

    def _offsets(self, upstream: str, timeout_s: float | None) -> dict[str, Offsets]:
        """The last checkpoint of each group and partition of an upstream cluster."""
        topic = self._policy.checkpoints_topic(upstream)
        found: dict[str, Offsets] = {}
        try:
            records = read_topic(
                self._access("consumer"),
                topic,
                timeout_s or self._timeout_s,
                new_topic_wait_s=0.0,  # an upstream cluster without checkpoints is normal
            )
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
    """Where a group of an upstream cluster continues, in one call."""
    with MirrorClient(properties, timeout_s) as client:
        return client.remote_consumer_offsets(group, upstream)


def replication_hops(properties: Mapping[str, str], upstream: str) -> int:
    """The number of hops from an upstream cluster, in one call; -1 if there is no path."""
    with MirrorClient(properties) as client:
        return client.replication_hops(upstream)


def upstream_clusters(properties: Mapping[str, str]) -> frozenset[str]:
    """The clusters whose heartbeats arrive, in one call."""
    with MirrorClient(properties) as client:
        return client.upstream_clusters()


def heartbeat_topics(properties: Mapping[str, str]) -> frozenset[str]:
    """The heartbeats topics, in one call."""
    with MirrorClient(properties) as client:
        return client.heartbeat_topics()


def checkpoint_topics(properties: Mapping[str, str]) -> frozenset[str]:
    """The checkpoint topics, in one call."""
    with MirrorClient(properties) as client:
        return client.checkpoint_topics()


def _policy(properties: Mapping[str, str]) -> ReplicationPolicy:
    values = MIRROR_CLIENT.parse(properties, _class_name)
    name, flag = values[_POLICY], values[_INTERNAL]
    assert isinstance(name, str)
    config = ReplicationPolicyConfig(
        source_alias=properties.get("source.cluster.alias"),
        separator=properties.get(_SEPARATOR),
        internal_separator_enabled=flag is not False,
        originals=properties,
    )
    return create_policy(name, config, _load)


def _class_name(name: str) -> str | None:
    return name if ":" in name else resolve_class(name)


def _load(name: str) -> PolicyFactory:
    try:
        factory: PolicyFactory = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError.of(_POLICY, f"{_POLICY}: {name} cannot be loaded: {error}") from error
    return factory
