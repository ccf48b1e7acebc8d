"""What the three connectors read alike: the flow, its names, its topic filter, its clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from sparkmirror.cluster.access import Access
from sparkmirror.config.classes import DEFAULT_GROUP_FILTER, DEFAULT_TOPIC_FILTER
from sparkmirror.config.clients import ClientKind, Side, client_config, connector_label
from sparkmirror.config.tables.filters import GROUP_FILTER, TOPIC_FILTER
from sparkmirror.connect.connectors.reading import Reading, load
from sparkmirror.mirror.filters import (
    DefaultGroupFilter,
    DefaultTopicFilter,
    GroupFilter,
    TopicFilter,
)
from sparkmirror.mirror.naming import PolicyConfig, PolicyFactory, ReplicationPolicy, policy
from sparkmirror.model import SourceAndTarget

_POLICY = "replication.policy.class"
_SEPARATOR = "replication.policy.separator"
_TOPIC_FILTER = "topic.filter.class"
_GROUP_FILTER = "group.filter.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowConfig:
    """One connector's side of a flow. `originals` hold secrets."""

    name: str
    flow: SourceAndTarget
    policy: ReplicationPolicy
    is_enabled: bool
    admin_timeout_s: float
    originals: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, reading: Reading, config: Mapping[str, str]) -> Self:
        """Take the keys that all three declare."""
        return cls(
            name=reading.text("name"),
            flow=SourceAndTarget(
                reading.text("source.cluster.alias"), reading.text("target.cluster.alias")
            ),
            policy=_policy(reading, config),
            is_enabled=reading.flag("enabled"),
            admin_timeout_s=reading.number("admin.timeout.ms") / 1000,
            originals=dict(config),
        )

    def alias(self, side: Side) -> str:
        """What people call the cluster on one side."""
        return self.flow.source if side is Side.SOURCE else self.flow.target

    def client(self, side: Side, kind: ClientKind, role: str) -> dict[str, str]:
        """The properties of one of the connector's clients."""
        return client_config(
            self.originals, side, kind, label=connector_label(self.originals), role=role
        )

    def access(self, side: Side, kind: ClientKind = ClientKind.ADMIN, role: str = "") -> Access:
        """The way to one side, as one of the connector's clients goes it."""
        return Access.from_properties(self.alias(side), self.client(side, kind, role))


def topic_filter(reading: Reading, config: Mapping[str, str]) -> TopicFilter:
    """Build the topic filter that the connector names."""
    name = reading.text(_TOPIC_FILTER)
    if name != DEFAULT_TOPIC_FILTER:
        made: TopicFilter = load(name, _TOPIC_FILTER)(config)
        return made
    keys = Reading(TOPIC_FILTER, config)
    return DefaultTopicFilter.of(keys.names("topics"), keys.names("topics.exclude"))


def group_filter(reading: Reading, config: Mapping[str, str]) -> GroupFilter:
    """Build the group filter that the connector names."""
    name = reading.text(_GROUP_FILTER)
    if name != DEFAULT_GROUP_FILTER:
        made: GroupFilter = load(name, _GROUP_FILTER)(config)
        return made
    keys = Reading(GROUP_FILTER, config)
    return DefaultGroupFilter.of(keys.names("groups"), keys.names("groups.exclude"))


def _policy(reading: Reading, config: Mapping[str, str]) -> ReplicationPolicy:
    # The flag beside the separator counts only where a separator was written down.
    said = PolicyConfig(
        source_alias=reading.text("source.cluster.alias"),
        separator=reading.text(_SEPARATOR) if _SEPARATOR in config else None,
        internal_separator_enabled=reading.flag(
            "replication.policy.internal.topic.separator.enabled"
        ),
        originals=config,
    )
    return policy(reading.text(_POLICY), said, _load_policy)


def _load_policy(name: str) -> PolicyFactory:
    factory: PolicyFactory = load(name, _POLICY)
    return factory
