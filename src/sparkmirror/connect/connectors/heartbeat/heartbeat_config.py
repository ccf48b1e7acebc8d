"""What the heartbeat connector reads in its config."""

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
    """The heartbeat connector's keys, read."""

    shared: MirrorConnectorConfig
    emit_heartbeats_s: float | None
    """How often to beat, in seconds; None means never."""
    heartbeats_factor: int

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> Self:
        """Read everything, or raise ConfigError with all faults."""
        reading = TypedConfig(HEARTBEAT, config)
        return cls(
            shared=MirrorConnectorConfig.from_config(reading, config),
            emit_heartbeats_s=reading.get_interval_s("emit.heartbeats"),
            heartbeats_factor=reading.get_int("heartbeats.topic.replication.factor"),
        )

    @property
    def heartbeats_topic(self) -> InternalTopic:
        """Where heartbeats are written to."""
        return heartbeats_topic(self.shared.policy, self.shared.flow)
