"""The heartbeat connector's config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sparkmirror.config.tables.heartbeat import HEARTBEAT
from sparkmirror.connect.connectors.shared.mirror_connector_config import MirrorConnectorConfig
from sparkmirror.connect.connectors.shared.typed_config import TypedConfig
from sparkmirror.mirror.topics.internal_topics import InternalTopic, heartbeats_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorHeartbeatConfig:
    """The heartbeat connector's parsed keys."""

    shared: MirrorConnectorConfig
    emit_heartbeats_s: float | None
    """The interval between heartbeats, in seconds; None means never."""
    heartbeats_factor: int

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> Self:
        """Parse all keys. Raises ConfigError with all errors."""
        typed_config = TypedConfig(HEARTBEAT, config)
        return cls(
            shared=MirrorConnectorConfig.from_config(typed_config, config),
            emit_heartbeats_s=typed_config.get_interval_s("emit.heartbeats"),
            heartbeats_factor=typed_config.get_int("heartbeats.topic.replication.factor"),
        )

    @property
    def heartbeats_topic(self) -> InternalTopic:
        """The flow's heartbeats topic."""
        return heartbeats_topic(self.shared.policy, self.shared.flow)
