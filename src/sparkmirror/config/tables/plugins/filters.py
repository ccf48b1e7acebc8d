"""Which topics, groups and topic configs are mirrored: the keys of the three default filters.

Connectors that name another filter class ignore these.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import HIGH, MEDIUM, ConfigDef, ConfigKey
from sparkmirror.config.definition.validators import ValidList
from sparkmirror.config.definition.value_types import Type

TOPIC_FILTER: Final = ConfigDef(
    ConfigKey(
        "topics",
        Type.LIST,
        (".*",),
        HIGH,
        "Topics to mirror: names or Java regular expressions, each of which must match a whole "
        "name. An empty list mirrors nothing.",
        validator=ValidList(),
    ),
    ConfigKey(
        "topics.exclude",
        Type.LIST,
        (r"mm2.*\.internal", r".*\.replica", "__.*"),
        HIGH,
        "Topics not to mirror, written like topics; wins over it. Keep the default patterns when "
        "you add your own, or internal topics will be mirrored.",
        validator=ValidList(),
    ),
)

GROUP_FILTER: Final = ConfigDef(
    ConfigKey(
        "groups",
        Type.LIST,
        (".*",),
        HIGH,
        "Consumer groups whose offsets are translated: ids or Java regular expressions, each of "
        "which must match a whole id. An empty list translates nothing.",
        validator=ValidList(),
    ),
    ConfigKey(
        "groups.exclude",
        Type.LIST,
        ("console-consumer-.*", "connect-.*", "__.*"),
        HIGH,
        "Consumer groups not to translate, written like groups; wins over it.",
        validator=ValidList(),
    ),
)

CONFIG_FILTER: Final = ConfigDef(
    ConfigKey(
        "config.properties.exclude",
        Type.LIST,
        (
            "follower.replication.throttled.replicas",
            "leader.replication.throttled.replicas",
            "message.timestamp.difference.max.ms",
            "log.message.timestamp.before.max.ms",
            "log.message.timestamp.after.max.ms",
            "message.timestamp.type",
            "unclean.leader.election.enable",
            "min.insync.replicas",
        ),
        HIGH,
        "Topic configs that are not copied to the remote topic: names or Java regular "
        "expressions. Add what the target shall decide for itself, retention.ms for instance.",
        validator=ValidList(),
    ),
    ConfigKey(
        "use.defaults.from",
        Type.STRING,
        "target",
        MEDIUM,
        "Where a topic config that was never set on the source topic comes from: source copies "
        "the source cluster's default, target leaves the target cluster's in force.",
    ),
)
