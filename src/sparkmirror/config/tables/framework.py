"""What Connect itself asks of every connector, whatever it does."""

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

COMMON_GROUP: Final = "Common"
TRANSFORMS_GROUP: Final = "Transforms"
PREDICATES_GROUP: Final = "Predicates"
ERROR_GROUP: Final = "Error Handling"

_STORAGE = "org.apache.kafka.connect.storage"
_CLASSES: Final = {"Converter": CONVERTERS, "HeaderConverter": HEADER_CONVERTERS}


def _converter(part: str, kind: str, order: int, doc: str) -> tuple[ConfigKey, ConfigKey]:
    """One of the three converters, and its version: equal rows but for the names."""
    name = f"{part}.converter"
    return (
        ConfigKey(
            name,
            Type.CLASS,
            None,
            LOW,
            doc,
            validator=ConcreteSubClassValidator(f"{_STORAGE}.{kind}", _CLASSES[kind]),
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
            f"Version of the {part} converter to use. There is one version of each, so leave it "
            "out.",
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
    *_converter(
        "key",
        "Converter",
        6,
        "Converter for record keys, instead of the worker's. A mirror copies bytes: use "
        "ByteArrayConverter.",
    ),
    *_converter(
        "value",
        "Converter",
        8,
        "Converter for record values, instead of the worker's. A mirror copies bytes: use "
        "ByteArrayConverter.",
    ),
    *_converter(
        "header",
        "HeaderConverter",
        10,
        "Converter for record headers, instead of the worker's. A mirror copies bytes: use "
        "ByteArrayConverter.",
    ),
)

_TRANSFORMS_AND_PREDICATES: Final = ConfigDef(
    ConfigKey(
        "transforms",
        Type.LIST,
        (),
        LOW,
        "Aliases of the transformations each record goes through, in this order; each has keys "
        "of its own, transforms.<alias>.type and so on. Without any, batches are copied unopened.",
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
        "Aliases of the conditions that transformations can be tied to; each has keys of its "
        "own, predicates.<alias>.type and so on.",
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
        "What to do when a secret that a config provider gave has expired: restart the connector "
        "with the new one, or none.",
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
        "How long a failed transformation is tried again, in milliseconds; 0 is not at all, -1 "
        "without end.",
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
        "Longest pause between such attempts, in milliseconds.",
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
        "What to do with a record that a transformation cannot handle: none fails the task, all "
        "leaves the record out. For a mirror, all means losing records.",
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
        "Whether tolerated errors are written to the log as well.",
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
        "Whether such a line names topic, partition and offset of the record. The record itself "
        "is never logged.",
        group=ERROR_GROUP,
        order=5,
        width=Width.SHORT,
        display_name="Log Error Details",
    ),
)

CONNECTOR: Final = _IDENTITY + _CONVERTERS + _TRANSFORMS_AND_PREDICATES + _ERRORS
