"""Where a group of workers keeps positions, configs and status."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition import HIGH, LOW, REQUIRED, ConfigDef, Key
from sparkmirror.config.validators import TopicSetting
from sparkmirror.config.value import Type

_PARTITIONS: Final = TopicSetting(
    "Number of partitions must be positive",
    "Positive number, or -1 to use the broker's default",
)
_REPLICATION: Final = TopicSetting(
    "Replication factor must be positive and not larger than the number of brokers in the Kafka "
    "cluster",
    "Positive number not larger than the number of brokers in the Kafka cluster, or -1 to use the "
    "broker's default",
)
_NOT_MORE = "Must not exceed the number of brokers: set it to 1 on a one-broker cluster."

INTERNAL_TOPICS: Final = ConfigDef(
    Key(
        "offset.storage.topic",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Topic for the positions of all connectors; compacted. Must be the same for all workers "
        "of a group and used by no other group.",
    ),
    Key(
        "offset.storage.partitions",
        Type.INT,
        25,
        LOW,
        "Partitions of the topic of positions, when the worker creates it.",
        validator=_PARTITIONS,
    ),
    Key(
        "offset.storage.replication.factor",
        Type.SHORT,
        3,
        LOW,
        f"Replication factor of the topic of positions. {_NOT_MORE}",
        validator=_REPLICATION,
    ),
    Key(
        "config.storage.topic",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Topic for the configs of all connectors; compacted, always one partition. Must be the "
        "same for all workers of a group and used by no other group.",
    ),
    Key(
        "config.storage.replication.factor",
        Type.SHORT,
        3,
        LOW,
        f"Replication factor of the topic of configs. {_NOT_MORE}",
        validator=_REPLICATION,
    ),
    Key(
        "status.storage.topic",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Topic for the status of all connectors and tasks; compacted. Must be the same for all "
        "workers of a group and used by no other group.",
    ),
    Key(
        "status.storage.partitions",
        Type.INT,
        5,
        LOW,
        "Partitions of the topic of status, when the worker creates it.",
        validator=_PARTITIONS,
    ),
    Key(
        "status.storage.replication.factor",
        Type.SHORT,
        3,
        LOW,
        f"Replication factor of the topic of status. {_NOT_MORE}",
        validator=_REPLICATION,
    ),
)
