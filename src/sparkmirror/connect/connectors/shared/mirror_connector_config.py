"""The config that all three connectors share: flow, policy, filters, clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.client_configs import (
    ClientType,
    ClusterSide,
    client_config,
    client_provider_faults,
    connector_label,
)
from sparkmirror.config.definition.java_classes import DEFAULT_GROUP_FILTER, DEFAULT_TOPIC_FILTER
from sparkmirror.config.tables.plugins.filters import GROUP_FILTER, TOPIC_FILTER
from sparkmirror.connect.connectors.shared.transformed_names import with_static_route
from sparkmirror.connect.connectors.shared.typed_config import TypedConfig, load_plugin
from sparkmirror.errors import ConfigError
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
    """The keys that all three connectors have. `originals` contains secrets."""

    name: str
    flow: SourceAndTarget
    policy: ReplicationPolicy
    is_enabled: bool
    admin_timeout_s: float
    originals: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_config(cls, typed_config: TypedConfig, config: Mapping[str, str]) -> Self:
        """Read the shared keys. Raises ConfigError if a client declares config providers."""
        faults = client_provider_faults(config)
        if faults:
            raise ConfigError(faults)
        return cls(
            name=typed_config.get_string("name"),
            flow=SourceAndTarget(
                typed_config.get_string("source.cluster.alias"),
                typed_config.get_string("target.cluster.alias"),
            ),
            policy=_policy(typed_config, config),
            is_enabled=typed_config.get_boolean("enabled"),
            admin_timeout_s=typed_config.get_int("admin.timeout.ms") / 1000,
            originals=dict(config),
        )

    def with_static_route(self) -> Self:
        """Return the config with the route of the connector's transformations in its policy.

        Raises ConfigError for faults of the transformations.
        """
        return replace(self, policy=with_static_route(self.policy, self.originals))

    def cluster_alias(self, side: ClusterSide) -> str:
        """Return the alias of the cluster on one side."""
        return self.flow.source if side is ClusterSide.SOURCE else self.flow.target

    def client_properties(
        self, side: ClusterSide, client_type: ClientType, role: str
    ) -> dict[str, str]:
        """Return the properties of one of the connector's clients."""
        return client_config(
            self.originals, side, client_type, label=connector_label(self.originals), role=role
        )

    def access(
        self, side: ClusterSide, client_type: ClientType = ClientType.ADMIN, role: str = ""
    ) -> ClusterAccess:
        """Return the access to one cluster for one of the connector's clients."""
        return ClusterAccess.from_properties(
            self.cluster_alias(side), self.client_properties(side, client_type, role)
        )


def topic_filter(typed_config: TypedConfig, config: Mapping[str, str]) -> TopicFilter:
    """Build the topic filter of `topic.filter.class`."""
    name = typed_config.get_string(_TOPIC_FILTER)
    if name != DEFAULT_TOPIC_FILTER:
        plugin: TopicFilter = load_plugin(name, _TOPIC_FILTER)(config)
        return plugin
    keys = TypedConfig(TOPIC_FILTER, config)
    return DefaultTopicFilter.of(keys.get_list("topics"), keys.get_list("topics.exclude"))


def topic_filter_key(typed_config: TypedConfig, config: Mapping[str, str]) -> str:
    """Return the key that selects topics, with its value, as problems show it."""
    name = typed_config.get_string(_TOPIC_FILTER)
    if name != DEFAULT_TOPIC_FILTER:
        return f"{_TOPIC_FILTER}={name}"
    return f"topics={','.join(TypedConfig(TOPIC_FILTER, config).get_list('topics'))}"


def group_filter(typed_config: TypedConfig, config: Mapping[str, str]) -> GroupFilter:
    """Build the group filter of `group.filter.class`."""
    name = typed_config.get_string(_GROUP_FILTER)
    if name != DEFAULT_GROUP_FILTER:
        plugin: GroupFilter = load_plugin(name, _GROUP_FILTER)(config)
        return plugin
    keys = TypedConfig(GROUP_FILTER, config)
    return DefaultGroupFilter.of(keys.get_list("groups"), keys.get_list("groups.exclude"))


def _policy(typed_config: TypedConfig, config: Mapping[str, str]) -> ReplicationPolicy:
    # MirrorMaker 2 ignores the internal separator flag unless the separator is configured.
    policy_config = ReplicationPolicyConfig(
        source_alias=typed_config.get_string("source.cluster.alias"),
        separator=typed_config.get_string(_SEPARATOR) if _SEPARATOR in config else None,
        internal_separator_enabled=typed_config.get_boolean(
            "replication.policy.internal.topic.separator.enabled"
        ),
        originals=config,
    )
    return create_policy(typed_config.get_string(_POLICY), policy_config, _load_policy)


def _load_policy(name: str) -> PolicyFactory:
    factory: PolicyFactory = load_plugin(name, _POLICY)
    return factory
