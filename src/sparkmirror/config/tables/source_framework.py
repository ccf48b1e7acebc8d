"""The keys that Connect reads for every source connector, in addition to `connector_config`."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import LOW, MEDIUM, ConfigDef, ConfigKey, Width
from sparkmirror.config.definition.validators import (
    CaseInsensitiveValidString,
    NonEmptyString,
    Range,
    UniqueAliases,
)
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.connector_config import CONNECTOR
from sparkmirror.config.tables.no_effect_reasons import (
    TOPIC_CREATION,
)

TOPIC_CREATION_GROUP: Final = "Topic Creation"
EXACTLY_ONCE_GROUP: Final = "Exactly Once Support"
OFFSETS_GROUP: Final = "offsets.topic"

SOURCE_ONLY: Final = ConfigDef(
    ConfigKey(
        "topic.creation.groups",
        Type.LIST,
        (),
        LOW,
        TOPIC_CREATION,
        validator=UniqueAliases("topic creation groups"),
        group=TOPIC_CREATION_GROUP,
        order=1,
        width=Width.LONG,
        display_name="Topic Creation Groups",
    ),
    ConfigKey(
        "exactly.once.support",
        Type.STRING,
        "requested",
        MEDIUM,
        "Whether the connector must copy exactly once: required refuses a config that cannot, "
        "requested takes what it gets. Needs exactly.once.source.support=enabled on the worker.",
        validator=CaseInsensitiveValidString(("REQUIRED", "REQUESTED")),
        group=EXACTLY_ONCE_GROUP,
        order=2,
        width=Width.SHORT,
        display_name="Exactly once support",
    ),
    ConfigKey(
        "transaction.boundary",
        Type.STRING,
        "poll",
        MEDIUM,
        "Where transactions end when copying exactly once: after each batch (poll) or after a "
        "time (interval). The third choice, connector, is not offered by these connectors.",
        validator=CaseInsensitiveValidString(("INTERVAL", "POLL", "CONNECTOR")),
        group=EXACTLY_ONCE_GROUP,
        order=3,
        width=Width.SHORT,
        display_name="Transaction Boundary",
    ),
    ConfigKey(
        "transaction.boundary.interval.ms",
        Type.LONG,
        None,
        LOW,
        "Length of a transaction in milliseconds when transaction.boundary is interval. Without "
        "it, the worker's offset.flush.interval.ms counts.",
        validator=Range(0, may_be_null=True),
        group=EXACTLY_ONCE_GROUP,
        order=4,
        width=Width.SHORT,
        display_name="Transaction boundary interval",
    ),
    ConfigKey(
        "offsets.storage.topic",
        Type.STRING,
        None,
        LOW,
        "Topic for this connector's positions, instead of the worker's. Useful when the "
        "connector writes to another cluster than the worker's own.",
        validator=NonEmptyString(),
        group=OFFSETS_GROUP,
        order=1,
        width=Width.LONG,
        display_name="Offsets topic",
    ),
)

SOURCE_CONNECTOR_FRAMEWORK: Final = CONNECTOR + SOURCE_ONLY
