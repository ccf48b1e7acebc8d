"""What the source connector reads in its config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sparkmirror.config.classes import DEFAULT_CONFIG_FILTER
from sparkmirror.config.clients import Side, offset_syncs_side
from sparkmirror.config.tables.filters import CONFIG_FILTER
from sparkmirror.config.tables.source import SOURCE
from sparkmirror.connect.connectors.flow_config import FlowConfig, topic_filter
from sparkmirror.connect.connectors.reading import Reading, load
from sparkmirror.mirror.filters import ConfigPropertyFilter, DefaultConfigPropertyFilter
from sparkmirror.mirror.internal_topics import InternalTopic, SyncsLocation, offset_syncs_topic
from sparkmirror.mirror.selection import Selection

_CONFIG_FILTER = "config.property.filter.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """The source connector's keys, read. Intervals are in seconds; None means never."""

    shared: FlowConfig
    selection: Selection
    config_filter: ConfigPropertyFilter
    replication_factor: int
    refresh_topics_s: float | None
    sync_configs_s: float | None
    sync_acls_s: float | None
    emits_offset_syncs: bool
    offset_lag_max: int
    offset_syncs_factor: int
    offset_syncs_side: Side

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> Self:
        """Read everything, or raise ConfigError with all faults."""
        reading = Reading(SOURCE, config)
        shared = FlowConfig.of(reading, config)
        return cls(
            shared=shared,
            selection=Selection(
                flow=shared.flow,
                policy=shared.policy,
                topic_filter=topic_filter(reading, config),
                replicate_heartbeats=reading.flag("heartbeats.replication.enabled"),
            ),
            config_filter=_config_filter(reading, config),
            replication_factor=reading.number("replication.factor"),
            refresh_topics_s=reading.interval("refresh.topics"),
            sync_configs_s=reading.interval("sync.topic.configs"),
            sync_acls_s=reading.interval("sync.topic.acls"),
            emits_offset_syncs=reading.flag("emit.offset-syncs.enabled"),
            offset_lag_max=reading.number("offset.lag.max"),
            offset_syncs_factor=reading.number("offset-syncs.topic.replication.factor"),
            offset_syncs_side=offset_syncs_side(config),
        )

    @property
    def offset_syncs_topic(self) -> InternalTopic:
        """Where the offset syncs of the flow are kept."""
        return offset_syncs_topic(
            self.shared.policy, self.shared.flow, SyncsLocation(self.offset_syncs_side)
        )


def _config_filter(reading: Reading, config: Mapping[str, str]) -> ConfigPropertyFilter:
    name = reading.text(_CONFIG_FILTER)
    if name != DEFAULT_CONFIG_FILTER:
        made: ConfigPropertyFilter = load(name, _CONFIG_FILTER)(config)
        return made
    keys = Reading(CONFIG_FILTER, config)
    return DefaultConfigPropertyFilter.of(
        keys.names("config.properties.exclude"), use_defaults_from=keys.text("use.defaults.from")
    )
