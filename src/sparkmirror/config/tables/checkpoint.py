"""The checkpoint connector: which groups are followed, and what is done with their offsets."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, REQUIRED, ConfigDef, ConfigKey
from sparkmirror.config.definition.java_classes import DEFAULT_GROUP_FILTER, DEFAULT_TOPIC_FILTER
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
from sparkmirror.config.tables.plugins.filters import GROUP_FILTER

CHECKPOINT: Final = MIRROR + ConfigDef(
    ConfigKey(
        "consumer.poll.timeout.ms",
        Type.LONG,
        1000,
        LOW,
        JAVA_CLIENT,
    ),
    *GROUP_FILTER,
    ConfigKey(
        "group.filter.class",
        Type.CLASS,
        DEFAULT_GROUP_FILTER,
        LOW,
        "Filter that decides which consumer groups are followed. The default reads groups and "
        "groups.exclude.",
        accepts_python_class=True,
    ),
    ConfigKey(
        "refresh.groups.enabled",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether to look for new consumer groups on the source from time to time.",
    ),
    ConfigKey(
        "refresh.groups.interval.seconds",
        Type.LONG,
        600,
        LOW,
        "How often to look for new consumer groups at the latest, in seconds. Most are noticed "
        "within seconds.",
    ),
    ConfigKey(
        "emit.checkpoints.enabled",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether checkpoints are written. The connector refuses to run without; disable the "
        "connector instead.",
    ),
    ConfigKey(
        "emit.checkpoints.interval.seconds",
        Type.LONG,
        60,
        LOW,
        "How often offsets are translated and checkpoints written, in seconds. Bounds how much "
        "a group reads again after a failover.",
    ),
    ConfigKey(
        "sync.group.offsets.enabled",
        Type.BOOLEAN,
        False,
        LOW,
        "Whether translated offsets are also committed on the target, for groups with no active "
        "member there. Turn it on if applications shall fail over without code of their own.",
    ),
    ConfigKey(
        "sync.group.offsets.interval.seconds",
        Type.LONG,
        60,
        LOW,
        "How often translated offsets are committed on the target, in seconds.",
    ),
    ConfigKey(
        "checkpoints.topic.replication.factor",
        Type.SHORT,
        3,
        LOW,
        "Replication factor of the topic of checkpoints on the target. Must not exceed the "
        "number of brokers: set it to 1 on a one-broker cluster.",
    ),
    OFFSET_SYNCS_LOCATION,
    ConfigKey(
        "topic.filter.class",
        Type.CLASS,
        DEFAULT_TOPIC_FILTER,
        LOW,
        TOPIC_FILTER_CLASS_DOC,
        accepts_python_class=True,
    ),
    METRIC_NAMES,
)

CHECKPOINT_TASK: Final = CHECKPOINT + ConfigDef(
    ConfigKey(
        "task.assigned.groups",
        Type.LIST,
        REQUIRED,
        LOW,
        "Consumer groups that the task follows; written by the connector.",
        validator=ValidList(may_be_empty=False),
    ),
    TASK_INDEX,
)
