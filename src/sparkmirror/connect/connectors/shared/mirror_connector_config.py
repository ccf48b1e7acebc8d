"""What the three connectors read alike: the flow, its names, its topic filter, its clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.client_configs import (
    ClientType,
    ClusterSide,
    client_config,
    connector_label,
)
from sparkmirror.config.definition.java_classes import DEFAULT_GROUP_FILTER, DEFAULT_TOPIC_FILTER
from sparkmirror.config.tables.filters import GROUP_FILTER, TOPIC_FILTER
from sparkmirror.connect.connectors.shared.typed_config import TypedConfig, load_plugin
from sparkmirror.mirror.topics.filters import (
    DefaultGroupFilter,
    DefaultTopicFilter,
    GroupFilter,
    TopicFilter,
)
from sparkmirror.mirror.topics.replication_policy import (
    PolicyFactory,
    ReplicationPolicy,
    ReplicationPolicyConfig,
    create_policy,
)
from sparkmirror.model import SourceAndTarget

_POLICY = "replication.policy.class"
_SEPARATOR = "replication.policy.separator"
_TOPIC_FILTER = "topic.filter.class"
_GROUP_FILTER = "group.filter.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorConnectorConfig:
    """One connector's side of a flow. `originals` hold secrets."""

    name: str
    flow: SourceAndTarget
    policy: ReplicationPolicy
    is_enabled: bool
    admin_timeout_s: float
    originals: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_config(cls, reading: TypedConfig, config: Mapping[str, str]) -> Self:
        """Take the keys that all three declare."""
        return cls(
            name=reading.get_string("name"),
            flow=SourceAndTarget(
                reading.get_string("source.cluster.alias"),
                reading.get_string("target.cluster.alias"),
            ),
            policy=_policy(reading, config),
            is_enabled=reading.get_boolean("enabled"),
            admin_timeout_s=reading.get_int("admin.timeout.ms") / 1000,
            originals=dict(config),
        )

    def cluster_alias(self, side: ClusterSide) -> str:
        """What people call the cluster on one side."""
        return self.flow.source if side is ClusterSide.SOURCE else self.flow.target

    def client_properties(self, side: ClusterSide, kind: ClientType, role: str) -> dict[str, str]:
        """The properties of one of the connector's clients."""
        return client_config(
            self.originals, side, kind, label=connector_label(self.originals), role=role
        )

    def access(
        self, side: ClusterSide, kind: ClientType = ClientType.ADMIN, role: str = ""
    ) -> ClusterAccess:
        """The way to one side, as one of the connector's clients goes it."""
        return ClusterAccess.from_properties(
            self.cluster_alias(side), self.client_properties(side, kind, role)
        )


def topic_filter(reading: TypedConfig, config: Mapping[str, str]) -> TopicFilter:
    """Build the topic filter that the connector names."""
    name = reading.get_string(_TOPIC_FILTER)
    if name != DEFAULT_TOPIC_FILTER:
        made: TopicFilter = load_plugin(name, _TOPIC_FILTER)(config)
        return made
    keys = TypedConfig(TOPIC_FILTER, config)
    return DefaultTopicFilter.of(keys.get_list("topics"), keys.get_list("topics.exclude"))


def group_filter(reading: TypedConfig, config: Mapping[str, str]) -> GroupFilter:
    """Build the group filter that the connector names."""
    name = reading.get_string(_GROUP_FILTER)
    if name != DEFAULT_GROUP_FILTER:
        made: GroupFilter = load_plugin(name, _GROUP_FILTER)(config)
        return made
    keys = TypedConfig(GROUP_FILTER, config)
    return DefaultGroupFilter.of(keys.get_list("groups"), keys.get_list("groups.exclude"))


def _policy(reading: TypedConfig, config: Mapping[str, str]) -> ReplicationPolicy:
    # The flag beside the separator counts only where a separator was written down.
    said = ReplicationPolicyConfig(
        source_alias=reading.get_string("source.cluster.alias"),
        separator=reading.get_string(_SEPARATOR) if _SEPARATOR in config else None,
        internal_separator_enabled=reading.get_boolean(
            "replication.policy.internal.topic.separator.enabled"
        ),
        originals=config,
    )
    return create_policy(reading.get_string(_POLICY), said, _load_policy)


def _load_policy(name: str) -> PolicyFactory:
    factory: PolicyFactory = load_plugin(name, _POLICY)
    return factory
