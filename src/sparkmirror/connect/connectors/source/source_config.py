"""The source connector's config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sparkmirror.config.client_configs import ClusterSide, offset_syncs_side
from sparkmirror.config.definition.java_classes import DEFAULT_CONFIG_FILTER
from sparkmirror.config.tables.plugins.filters import CONFIG_FILTER
from sparkmirror.config.tables.source import SOURCE
from sparkmirror.connect.connectors.shared.mirror_connector_config import (
    MirrorConnectorConfig,
    topic_filter,
    topic_filter_key,
)
from sparkmirror.connect.connectors.shared.typed_config import TypedConfig, load_plugin
from sparkmirror.mirror.topics.filters import ConfigPropertyFilter, DefaultConfigPropertyFilter
from sparkmirror.mirror.topics.internal_topics import (
    InternalTopic,
    OffsetSyncsLocation,
    offset_syncs_topic,
)
from sparkmirror.mirror.topics.topic_selection import TopicSelection

_CONFIG_FILTER = "config.property.filter.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSourceConfig:
    """The source connector's parsed keys. Intervals are in seconds; None means never."""

    shared: MirrorConnectorConfig
    selection: TopicSelection
    topics_key: str
    """The key that selects topics, with its value."""
    config_filter: ConfigPropertyFilter
    replication_factor: int
    refresh_topics_s: float | None
    sync_configs_s: float | None
    sync_acls_s: float | None
    emits_offset_syncs: bool
    offset_lag_max: int
    offset_syncs_factor: int
    offset_syncs_side: ClusterSide

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> Self:
        """Parse all keys. Raises ConfigError with all errors."""
        typed_config = TypedConfig(SOURCE, config)
        shared = MirrorConnectorConfig.from_config(typed_config, config).with_static_route()
        return cls(
            shared=shared,
            selection=TopicSelection(
                flow=shared.flow,
                policy=shared.policy,
                topic_filter=topic_filter(typed_config, config),
                replicate_heartbeats=typed_config.get_boolean("heartbeats.replication.enabled"),
            ),
            topics_key=topic_filter_key(typed_config, config),
            config_filter=_config_filter(typed_config, config),
            replication_factor=typed_config.get_int("replication.factor"),
            refresh_topics_s=typed_config.get_interval_s("refresh.topics"),
            sync_configs_s=typed_config.get_interval_s("sync.topic.configs"),
            sync_acls_s=typed_config.get_interval_s("sync.topic.acls"),
            emits_offset_syncs=typed_config.get_boolean("emit.offset-syncs.enabled"),
            offset_lag_max=typed_config.get_int("offset.lag.max"),
            offset_syncs_factor=typed_config.get_int("offset-syncs.topic.replication.factor"),
            offset_syncs_side=offset_syncs_side(config),
        )

    @property
    def offset_syncs_topic(self) -> InternalTopic:
        """The flow's offset-syncs topic."""
        return offset_syncs_topic(
            self.shared.policy, self.shared.flow, OffsetSyncsLocation(self.offset_syncs_side)
        )


def _config_filter(typed_config: TypedConfig, config: Mapping[str, str]) -> ConfigPropertyFilter:
    name = typed_config.get_string(_CONFIG_FILTER)
    if name != DEFAULT_CONFIG_FILTER:
        plugin: ConfigPropertyFilter = load_plugin(name, _CONFIG_FILTER)(config)
        return plugin
    keys = TypedConfig(CONFIG_FILTER, config)
    return DefaultConfigPropertyFilter.of(
        keys.get_list("config.properties.exclude"),
        use_defaults_from=keys.get_string("use.defaults.from"),
    )
