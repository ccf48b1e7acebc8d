"""The heartbeat connector: how often it writes a heartbeat."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, ConfigDef, ConfigKey
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.mirror_connector import MIRROR

HEARTBEAT: Final = MIRROR + ConfigDef(
    ConfigKey(
        "emit.heartbeats.enabled",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether heartbeats are written to the target. Tools use them to see which flows exist "
        "and whether they live; in a dedicated file every pair of clusters beats by default.",
    ),
    ConfigKey(
        "emit.heartbeats.interval.seconds",
        Type.LONG,
        1,
        LOW,
        "How often a heartbeat is written, in seconds.",
    ),
    ConfigKey(
        "heartbeats.topic.replication.factor",
        Type.SHORT,
        3,
        LOW,
        "Replication factor of the topic heartbeats. Must not exceed the number of brokers: set "
        "it to 1 on a one-broker cluster.",
    ),
)
