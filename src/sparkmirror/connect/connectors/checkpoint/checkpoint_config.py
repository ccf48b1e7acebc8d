"""The checkpoint connector's config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sparkmirror.config.client_configs import ClusterSide, offset_syncs_side
from sparkmirror.config.tables.checkpoint import CHECKPOINT
from sparkmirror.connect.connectors.shared.mirror_connector_config import (
    MirrorConnectorConfig,
    group_filter,
    topic_filter,
)
from sparkmirror.connect.connectors.shared.typed_config import TypedConfig
from sparkmirror.mirror.topics.filters import GroupFilter, TopicFilter
from sparkmirror.mirror.topics.internal_topics import (
    InternalTopic,
    OffsetSyncsLocation,
    checkpoints_topic,
    offset_syncs_topic,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorCheckpointConfig:
    """The checkpoint connector's parsed keys. Intervals are in seconds; None means never."""

    shared: MirrorConnectorConfig
    topic_filter: TopicFilter
    group_filter: GroupFilter
    refresh_groups_s: float | None
    emit_checkpoints_s: float | None
    sync_group_offsets_s: float | None
    checkpoints_factor: int
    offset_syncs_side: ClusterSide

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> Self:
        """Parse all keys. Raises ConfigError with all errors."""
        typed_config = TypedConfig(CHECKPOINT, config)
        return cls(
            shared=MirrorConnectorConfig.from_config(typed_config, config).with_static_route(),
            topic_filter=topic_filter(typed_config, config),
            group_filter=group_filter(typed_config, config),
            refresh_groups_s=typed_config.get_interval_s("refresh.groups"),
            emit_checkpoints_s=typed_config.get_interval_s("emit.checkpoints"),
            sync_group_offsets_s=typed_config.get_interval_s("sync.group.offsets"),
            checkpoints_factor=typed_config.get_int("checkpoints.topic.replication.factor"),
            offset_syncs_side=offset_syncs_side(config),
        )

    @property
    def checkpoints_topic(self) -> InternalTopic:
        """The flow's checkpoints topic."""
        return checkpoints_topic(self.shared.policy, self.shared.flow)

    @property
    def offset_syncs_topic(self) -> InternalTopic:
        """The flow's offset-syncs topic."""
        return offset_syncs_topic(
            self.shared.policy, self.shared.flow, OffsetSyncsLocation(self.offset_syncs_side)
        )
