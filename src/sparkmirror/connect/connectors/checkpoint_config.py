"""What the checkpoint connector reads in its config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sparkmirror.config.clients import Side, offset_syncs_side
from sparkmirror.config.tables.checkpoint import CHECKPOINT
from sparkmirror.connect.connectors.flow_config import FlowConfig, group_filter, topic_filter
from sparkmirror.connect.connectors.reading import Reading
from sparkmirror.mirror.filters import GroupFilter, TopicFilter
from sparkmirror.mirror.internal_topics import (
    InternalTopic,
    SyncsLocation,
    checkpoints_topic,
    offset_syncs_topic,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfig:
    """The checkpoint connector's keys, read. Intervals are in seconds; None means never."""

    shared: FlowConfig
    topic_filter: TopicFilter
    group_filter: GroupFilter
    refresh_groups_s: float | None
    emit_checkpoints_s: float | None
    sync_group_offsets_s: float | None
    checkpoints_factor: int
    offset_syncs_side: Side

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> Self:
        """Read everything, or raise ConfigError with all faults."""
        reading = Reading(CHECKPOINT, config)
        return cls(
            shared=FlowConfig.of(reading, config),
            topic_filter=topic_filter(reading, config),
            group_filter=group_filter(reading, config),
            refresh_groups_s=reading.interval("refresh.groups"),
            emit_checkpoints_s=reading.interval("emit.checkpoints"),
            sync_group_offsets_s=reading.interval("sync.group.offsets"),
            checkpoints_factor=reading.number("checkpoints.topic.replication.factor"),
            offset_syncs_side=offset_syncs_side(config),
        )

    @property
    def checkpoints_topic(self) -> InternalTopic:
        """Where checkpoints are written to."""
        return checkpoints_topic(self.shared.policy, self.shared.flow)

    @property
    def offset_syncs_topic(self) -> InternalTopic:
        """Where the offset syncs of the flow are kept."""
        return offset_syncs_topic(
            self.shared.policy, self.shared.flow, SyncsLocation(self.offset_syncs_side)
        )
