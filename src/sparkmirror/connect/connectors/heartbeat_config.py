"""What the heartbeat connector reads in its config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sparkmirror.config.tables.heartbeat import HEARTBEAT
from sparkmirror.connect.connectors.flow_config import FlowConfig
from sparkmirror.connect.connectors.reading import Reading
from sparkmirror.mirror.internal_topics import InternalTopic, heartbeats_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatConfig:
    """The heartbeat connector's keys, read."""

    shared: FlowConfig
    emit_heartbeats_s: float | None
    """How often to beat, in seconds; None means never."""
    heartbeats_factor: int

    @classmethod
    def parse(cls, config: Mapping[str, str]) -> Self:
        """Read everything, or raise ConfigError with all faults."""
        reading = Reading(HEARTBEAT, config)
        return cls(
            shared=FlowConfig.of(reading, config),
            emit_heartbeats_s=reading.interval("emit.heartbeats"),
            heartbeats_factor=reading.number("heartbeats.topic.replication.factor"),
        )

    @property
    def heartbeats_topic(self) -> InternalTopic:
        """Where heartbeats are written to."""
        return heartbeats_topic(self.shared.policy, self.shared.flow)
