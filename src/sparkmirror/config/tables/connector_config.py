"""The keys that Connect itself reads for every connector."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import (
    HIGH,
    LOW,
    MEDIUM,
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Width,
)
from sparkmirror.config.definition.java_classes import CONVERTERS, HEADER_CONVERTERS
from sparkmirror.config.definition.plugin_versions import PluginVersionValidator
from sparkmirror.config.definition.recommenders import FixedRecommender, VisibleIfSetRecommender
from sparkmirror.config.definition.validators import (
    ConcreteSubClassValidator,
    NonEmptyStringWithoutControlChars,
    Range,
    UniqueAliases,
    ValidString,
)
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.no_effect_reasons import BYTES, NOT_RETRIED, ONE_VERSION

COMMON_GROUP: Final = "Common"
TRANSFORMS_GROUP: Final = "Transforms"
PREDICATES_GROUP: Final = "Predicates"
ERROR_GROUP: Final = "Error Handling"

_STORAGE = "org.apache.kafka.connect.storage"
_CLASSES: Final = {"Converter": CONVERTERS, "HeaderConverter": HEADER_CONVERTERS}


def _converter(part: str, interface: str, order: int) -> tuple[ConfigKey, ConfigKey]:
    """The key of one of the three converters, and the key of its version."""
    name = f"{part}.converter"
    return (
        ConfigKey(
            name,
            Type.CLASS,
            None,
            LOW,
            BYTES,
            validator=ConcreteSubClassValidator(f"{_STORAGE}.{interface}", _CLASSES[interface]),
            group=COMMON_GROUP,
            order=order,
            width=Width.SHORT,
            display_name=f"{part.capitalize()} converter class",
            recommender=FixedRecommender(),
        ),
        ConfigKey(
            f"{name}.plugin.version",
            Type.STRING,
            None,
            LOW,
            ONE_VERSION,
            validator=PluginVersionValidator(),
            group=COMMON_GROUP,
            order=order + 1,
            width=Width.SHORT,
            display_name=f"{part.capitalize()} converter version",
            recommender=VisibleIfSetRecommender(name),
        ),
    )


_IDENTITY: Final = ConfigDef(
    ConfigKey(
        "name",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Name of the connector, unique within the cluster of workers. Its positions are stored "
        "under this name: a new name starts from the beginning.",
        validator=NonEmptyStringWithoutControlChars(),
        group=COMMON_GROUP,
        order=1,
        width=Width.MEDIUM,
        display_name="Connector name",
    ),
    ConfigKey(
        "connector.class",
        Type.STRING,
        REQUIRED,
        HIGH,
        "What kind of connector it is: full class name, simple name or the name without the "
        "ending Connector.",
        group=COMMON_GROUP,
        order=2,
        width=Width.LONG,
        display_name="Connector class",
    ),
    ConfigKey(
        "connector.plugin.version",
        Type.STRING,
        None,
        MEDIUM,
        "Version of the connector to use, or a range of versions. There is one version of each, "
        "so leave it out.",
        validator=PluginVersionValidator(),
        group=COMMON_GROUP,
        order=3,
        width=Width.MEDIUM,
        display_name="Connector version",
        recommender=FixedRecommender(),
    ),
    ConfigKey(
        "tasks.max",
        Type.INT,
        1,
        HIGH,
        "Most tasks the connector may be divided into; one task copies one share of the "
        "partitions. Raise it to copy on several cores or machines.",
        validator=Range(1),
        group=COMMON_GROUP,
        order=4,
        width=Width.SHORT,
        display_name="Tasks max",
    ),
    ConfigKey(
        "tasks.max.enforce",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether a connector that makes more tasks than tasks.max fails. The connectors here "
        "never do.",
        group=COMMON_GROUP,
        order=5,
        width=Width.SHORT,
        display_name="Enforce tasks max",
    ),
)

_CONVERTERS: Final = ConfigDef(
    *_converter("key", "Converter", 6),
    *_converter("value", "Converter", 8),
    *_converter("header", "HeaderConverter", 10),
)

_TRANSFORMS_AND_PREDICATES: Final = ConfigDef(
    ConfigKey(
        "transforms",
        Type.LIST,
        (),
        LOW,
        "Aliases of the transformations that records pass through, in this order. Each has a "
        "class, transforms.<alias>.type, and the keys of that class. Only source connectors apply "
        "them.",
        validator=UniqueAliases("transformation aliases"),
        group=TRANSFORMS_GROUP,
        order=12,
        width=Width.LONG,
        display_name="Transforms",
    ),
    ConfigKey(
        "predicates",
        Type.LIST,
        (),
        LOW,
        "Aliases of predicates, by which transforms.<alias>.predicate chooses the records that a "
        "transformation is applied to. Each has a class, predicates.<alias>.type, and its keys.",
        validator=UniqueAliases("predicate aliases"),
        group=PREDICATES_GROUP,
        order=13,
        width=Width.LONG,
        display_name="Predicates",
    ),
    ConfigKey(
        "config.action.reload",
        Type.STRING,
        "restart",
        LOW,
        "What to do when a value that a config provider gave has changed or expired: restart the "
        "connector with the new one, or none. Changes are noticed within seconds.",
        validator=ValidString(("none", "restart")),
        group=COMMON_GROUP,
        order=14,
        width=Width.MEDIUM,
        display_name="Reload Action",
    ),
)

_ERRORS: Final = ConfigDef(
    ConfigKey(
        "errors.retry.timeout",
        Type.LONG,
        0,
        MEDIUM,
        NOT_RETRIED,
        group=ERROR_GROUP,
        order=1,
        width=Width.MEDIUM,
        display_name="Retry Timeout for Errors",
    ),
    ConfigKey(
        "errors.retry.delay.max.ms",
        Type.LONG,
        60000,
        MEDIUM,
        NOT_RETRIED,
        group=ERROR_GROUP,
        order=2,
        width=Width.MEDIUM,
        display_name="Maximum Delay Between Retries for Errors",
    ),
    ConfigKey(
        "errors.tolerance",
        Type.STRING,
        "none",
        MEDIUM,
        "What becomes of a record that a transformation fails on: none holds its partition at this "
        "record, with the reason, while all others go on; all drops the record.",
        validator=ValidString(("none", "all")),
        group=ERROR_GROUP,
        order=3,
        width=Width.SHORT,
        display_name="Error Tolerance",
    ),
    ConfigKey(
        "errors.log.enable",
        Type.BOOLEAN,
        False,
        MEDIUM,
        "Whether a record that a transformation fails on, and that errors.tolerance=all drops, is "
        "logged: stage, class, topic, partition, offset, time and error. A partition gets at most "
        "one line in a second, and the next one counts the others.",
        group=ERROR_GROUP,
        order=4,
        width=Width.SHORT,
        display_name="Log Errors",
    ),
    ConfigKey(
        "errors.log.include.messages",
        Type.BOOLEAN,
        False,
        MEDIUM,
        "Whether such a log line also has key, value and headers of the record, and the causes of "
        "the error.",
        group=ERROR_GROUP,
        order=5,
        width=Width.SHORT,
        display_name="Log Error Details",
    ),
)

CONNECTOR: Final = _IDENTITY + _CONVERTERS + _TRANSFORMS_AND_PREDICATES + _ERRORS
