"""The internal topics of a worker group: offsets, configs and statuses."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import HIGH, LOW, REQUIRED, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import TopicSettingValidator
from sparkmirror.config.definition.value_types import Type

_PARTITIONS: Final = TopicSettingValidator(
    "Number of partitions must be positive",
    "Positive number, or -1 to use the broker's default",
)
_REPLICATION: Final = TopicSettingValidator(
    "Replication factor must be positive and not larger than the number of brokers in the Kafka "
    "cluster",
    "Positive number not larger than the number of brokers in the Kafka cluster, or -1 to use the "
    "broker's default",
)
_REPLICATION_ADVICE = "Must not exceed the number of brokers: set it to 1 on a one-broker cluster."

INTERNAL_TOPICS: Final = ConfigDef(
    ConfigKey(
        "offset.storage.topic",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Topic for the positions of all connectors; compacted. Must be the same for all workers "
        "of a group and used by no other group.",
    ),
    ConfigKey(
        "offset.storage.partitions",
        Type.INT,
        25,
        LOW,
        "Partitions of the topic of positions, when the worker creates it.",
        validator=_PARTITIONS,
    ),
    ConfigKey(
        "offset.storage.replication.factor",
        Type.SHORT,
        3,
        LOW,
        f"Replication factor of the topic of positions. {_REPLICATION_ADVICE}",
        validator=_REPLICATION,
    ),
    ConfigKey(
        "config.storage.topic",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Topic for the configs of all connectors; compacted, always one partition. Must be the "
        "same for all workers of a group and used by no other group.",
    ),
    ConfigKey(
        "config.storage.replication.factor",
        Type.SHORT,
        3,
        LOW,
        f"Replication factor of the topic of configs. {_REPLICATION_ADVICE}",
        validator=_REPLICATION,
    ),
    ConfigKey(
        "status.storage.topic",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Topic for the status of all connectors and tasks; compacted. Must be the same for all "
        "workers of a group and used by no other group.",
    ),
    ConfigKey(
        "status.storage.partitions",
        Type.INT,
        5,
        LOW,
        "Partitions of the topic of status, when the worker creates it.",
        validator=_PARTITIONS,
    ),
    ConfigKey(
        "status.storage.replication.factor",
        Type.SHORT,
        3,
        LOW,
        f"Replication factor of the topic of status. {_REPLICATION_ADVICE}",
        validator=_REPLICATION,
    ),
)
