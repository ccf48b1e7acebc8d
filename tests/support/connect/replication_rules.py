"""Filters, policies and selections, built from text properties as the connectors do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.tables.plugins.filters import CONFIG_FILTER, GROUP_FILTER, TOPIC_FILTER
from sparkmirror.mirror.topics.filters import (
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultTopicFilter,
)
from sparkmirror.mirror.topics.replication_policy import (
    DefaultReplicationPolicy,
    PolicyFactory,
    ReplicationPolicy,
    ReplicationPolicyConfig,
    create_policy,
)
from sparkmirror.mirror.topics.topic_selection import TopicSelection
from sparkmirror.model import SourceAndTarget, TopicPartition

FLOW = SourceAndTarget("source", "target")


def topic_filter(**properties: str) -> DefaultTopicFilter:
    """Build the topic filter; `topics_exclude` stands for `topics.exclude`."""
    return topic_filter_of({name.replace("_", "."): text for name, text in properties.items()})


def topic_filter_of(config: Mapping[str, str]) -> DefaultTopicFilter:
    lists = _lists(TOPIC_FILTER, config)
    return DefaultTopicFilter.of(lists["topics"], lists["topics.exclude"])


def group_filter_of(config: Mapping[str, str]) -> DefaultGroupFilter:
    lists = _lists(GROUP_FILTER, config)
    return DefaultGroupFilter.of(lists["groups"], lists["groups.exclude"])


def config_property_filter_of(config: Mapping[str, str]) -> DefaultConfigPropertyFilter:
    values = CONFIG_FILTER.parse(dict(config))
    return DefaultConfigPropertyFilter.of(
        _lists(CONFIG_FILTER, config)["config.properties.exclude"],
        use_defaults_from=str(values["use.defaults.from"]),
    )


def _lists(table: ConfigDef, config: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    values = table.parse(dict(config))
    return {name: value for name, value in values.items() if isinstance(value, tuple)}


def policy_of(name: str, config: Mapping[str, str]) -> ReplicationPolicy:
    """Build a policy from properties, reading the flag as Java's parseBoolean does."""
    flag = config.get("replication.policy.internal.topic.separator.enabled", "true")
    policy_config = ReplicationPolicyConfig(
        source_alias=config.get("source.cluster.alias"),
        separator=config.get("replication.policy.separator"),
        internal_separator_enabled=flag.lower() == "true",
        originals=config,
    )
    return create_policy(name, policy_config, no_custom_policy)


def no_custom_policy(name: str) -> PolicyFactory:
    """Fail: the test uses no custom policy."""
    raise AssertionError(f"unexpected policy class {name}")


def selection(
    topics: DefaultTopicFilter | None = None,
    policy: ReplicationPolicy | None = None,
    *,
    replicate_heartbeats: bool = True,
    source_alias_is_cycle: bool = False,
) -> TopicSelection:
    """Build the selection of the flow source->target."""
    return TopicSelection(
        flow=FLOW,
        policy=policy or DefaultReplicationPolicy(),
        topic_filter=topics or topic_filter(),
        replicate_heartbeats=replicate_heartbeats,
        source_alias_is_cycle=source_alias_is_cycle,
    )


def parse_partitions(*texts: str) -> frozenset[TopicPartition]:
    """Read `topic-partition` texts."""
    return frozenset(TopicPartition.parse(text) for text in texts)


def all_partitions(topics: Mapping[str, int]) -> frozenset[TopicPartition]:
    """Spell out the partitions of topics, given how many each has."""
    return frozenset(TopicPartition(topic, i) for topic, n in topics.items() for i in range(n))


def replicated_topics(names: Iterable[str], flow: TopicSelection) -> list[str]:
    """Keep the names that a selection replicates, in the order given."""
    return [name for name in names if flow.should_replicate_topic(name)]
