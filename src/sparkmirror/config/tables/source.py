"""The source connector: which topics are copied, how remote topics are made and kept alike."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, REQUIRED, ConfigDef, ConfigKey
from sparkmirror.config.definition.java_classes import DEFAULT_CONFIG_FILTER, DEFAULT_TOPIC_FILTER
from sparkmirror.config.definition.validators import ValidList
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.mirror_connector import (
    METRIC_NAMES,
    MIRROR,
    OFFSET_SYNCS_LOCATION,
    TASK_INDEX,
    TOPIC_FILTER_CLASS_DOC,
)
from sparkmirror.config.tables.no_effect_reasons import (
    JAVA_CLIENT,
)
from sparkmirror.config.tables.plugins.filters import CONFIG_FILTER, TOPIC_FILTER

_TOPIC_SELECTION: Final = ConfigDef(
    *TOPIC_FILTER,
    CONFIG_FILTER["config.properties.exclude"],
    ConfigKey(
        "topic.filter.class",
        Type.CLASS,
        DEFAULT_TOPIC_FILTER,
        LOW,
        TOPIC_FILTER_CLASS_DOC,
        accepts_python_class=True,
    ),
    ConfigKey(
        "config.property.filter.class",
        Type.CLASS,
        DEFAULT_CONFIG_FILTER,
        LOW,
        "Filter that decides which topic configs are copied. The default reads "
        "config.properties.exclude and use.defaults.from.",
        accepts_python_class=True,
    ),
    ConfigKey(
        "consumer.poll.timeout.ms",
        Type.LONG,
        1000,
        LOW,
        JAVA_CLIENT,
    ),
)

_TOPIC_SYNC: Final = ConfigDef(
    ConfigKey(
        "refresh.topics.enabled",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether to look for new topics and partitions on the source from time to time.",
    ),
    ConfigKey(
        "refresh.topics.interval.seconds",
        Type.LONG,
        600,
        LOW,
        "How often to look for new topics and partitions at the latest, in seconds. Most are "
        "noticed within seconds.",
    ),
    ConfigKey(
        "sync.topic.configs.enabled",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether remote topics follow the configs of their source topics. Turn it off where the "
        "target's admin API does not allow changes.",
    ),
    ConfigKey(
        "sync.topic.configs.interval.seconds",
        Type.LONG,
        600,
        LOW,
        "How often topic configs are compared and copied, in seconds.",
    ),
    ConfigKey(
        "sync.topic.acls.enabled",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether read rights on a source topic are given on its remote topic as well. Turn it "
        "off for clusters without an authorizer or with their own rights management.",
    ),
    ConfigKey(
        "sync.topic.acls.interval.seconds",
        Type.LONG,
        600,
        LOW,
        "How often topic ACLs are compared and copied, in seconds.",
    ),
    ConfigKey(
        "replication.factor",
        Type.INT,
        2,
        LOW,
        "Replication factor of remote topics that the mirror creates; -1 leaves it to the "
        "target's default. Must not exceed the number of brokers.",
    ),
)

_OFFSETS: Final = ConfigDef(
    ConfigKey(
        "offset-syncs.topic.replication.factor",
        Type.SHORT,
        3,
        LOW,
        "Replication factor of the topic of offset syncs. Must not exceed the number of brokers: "
        "set it to 1 on a one-broker cluster.",
    ),
    ConfigKey(
        "offset.lag.max",
        Type.LONG,
        100,
        LOW,
        "How many records the distance between source and target offset may drift before a new "
        "offset sync is written. Lower it for finer translation at the price of more syncs.",
    ),
    OFFSET_SYNCS_LOCATION,
    ConfigKey(
        "emit.offset-syncs.enabled",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether offset syncs are written at all. Without them group offsets cannot be "
        "translated and no checkpoint connector can run.",
    ),
    ConfigKey(
        "heartbeats.replication.enabled",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether heartbeats are copied even if the topic filter leaves them out. Turn it off only "
        "if no tool looks at the flow's topology.",
    ),
    METRIC_NAMES,
)

SOURCE: Final = MIRROR + _TOPIC_SELECTION + _TOPIC_SYNC + _OFFSETS

SOURCE_TASK: Final = SOURCE + ConfigDef(
    ConfigKey(
        "task.assigned.partitions",
        Type.LIST,
        REQUIRED,
        LOW,
        "Partitions that the task copies, as topic-partition; written by the connector.",
        validator=ValidList(may_be_empty=False),
    ),
    TASK_INDEX,
)
