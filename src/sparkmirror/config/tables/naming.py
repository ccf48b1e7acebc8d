"""How the names of remote topics and internal topics are made, and by which admin client."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, ConfigDef, ConfigKey
from sparkmirror.config.definition.java_classes import DEFAULT_REPLICATION_POLICY, FORWARDING_ADMIN
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.no_effect_reasons import (
    JAVA_CLASS,
)

NAMING: Final = ConfigDef(
    ConfigKey(
        "replication.policy.class",
        Type.CLASS,
        DEFAULT_REPLICATION_POLICY,
        LOW,
        "Rule that names remote topics. The default writes source.topic; "
        "IdentityReplicationPolicy keeps the name, which forbids mirroring in a circle; "
        "module:Class is a Python class (sparkmirror.plugin.modules). All connectors of a flow "
        "should agree on it.",
        accepts_python_class=True,
    ),
    ConfigKey(
        "replication.policy.separator",
        Type.STRING,
        ".",
        LOW,
        "Text between the alias of a cluster and the name of a topic. Change it if your topic "
        "names contain dots that look like aliases, and before the first record is mirrored.",
    ),
    ConfigKey(
        "replication.policy.internal.topic.separator.enabled",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether the separator is also used inside the names of internal topics. Set it to false "
        "to go on with internal topics that a MirrorMaker before 3.2 made.",
    ),
)

FORWARDING_ADMIN_KEY: Final = ConfigKey(
    "forwarding.admin.class",
    Type.CLASS,
    FORWARDING_ADMIN,
    LOW,
    JAVA_CLASS,
)
