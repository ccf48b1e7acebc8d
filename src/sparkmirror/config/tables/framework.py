"""What Connect itself asks of every connector, whatever it does."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.classes import CONVERTERS, HEADER_CONVERTERS
from sparkmirror.config.definition import (
    HIGH,
    LOW,
    MEDIUM,
    REQUIRED,
    ConfigDef,
    Key,
    Width,
)
from sparkmirror.config.recommenders import Offer, VisibleWith
from sparkmirror.config.validators import (
    ClassOf,
    ConnectorName,
    OneOf,
    Range,
    UniqueAliases,
)
from sparkmirror.config.value import Type
from sparkmirror.config.versions import PluginVersion

COMMON_GROUP: Final = "Common"
TRANSFORMS_GROUP: Final = "Transforms"
PREDICATES_GROUP: Final = "Predicates"
ERROR_GROUP: Final = "Error Handling"

_STORAGE = "org.apache.kafka.connect.storage"
_CLASSES: Final = {"Converter": CONVERTERS, "HeaderConverter": HEADER_CONVERTERS}


def _converter(part: str, kind: str, order: int, doc: str) -> tuple[Key, Key]:
    """One of the three converters, and its version: equal rows but for the names."""
    name = f"{part}.converter"
    return (
        Key(
            name,
            Type.CLASS,
            None,
            LOW,
            doc,
            validator=ClassOf(f"{_STORAGE}.{kind}", _CLASSES[kind]),
            group=COMMON_GROUP,
            order=order,
            width=Width.SHORT,
            display_name=f"{part.capitalize()} converter class",
            recommender=Offer(),
        ),
        Key(
            f"{name}.plugin.version",
            Type.STRING,
            None,
            LOW,
            f"Version of the {part} converter to use. There is one version of each, so leave it "
            "out.",
            validator=PluginVersion(),
            group=COMMON_GROUP,
            order=order + 1,
            width=Width.SHORT,
            display_name=f"{part.capitalize()} converter version",
            recommender=VisibleWith(name),
        ),
    )


_IDENTITY: Final = ConfigDef(
    Key(
        "name",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Name of the connector, unique within the cluster of workers. Its positions are stored "
        "under this name: a new name starts from the beginning.",
        validator=ConnectorName(),
        group=COMMON_GROUP,
        order=1,
        width=Width.MEDIUM,
        display_name="Connector name",
    ),
    Key(
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
    Key(
        "connector.plugin.version",
        Type.STRING,
        None,
        MEDIUM,
        "Version of the connector to use, or a range of versions. There is one version of each, "
        "so leave it out.",
        validator=PluginVersion(),
        group=COMMON_GROUP,
        order=3,
        width=Width.MEDIUM,
        display_name="Connector version",
        recommender=Offer(),
    ),
    Key(
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
    Key(
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

_CHANGES: Final = ConfigDef(
    Key(
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
    Key(
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
    Key(
        "config.action.reload",
        Type.STRING,
        "restart",
        LOW,
        "What to do when a secret that a config provider gave has expired: restart the connector "
        "with the new one, or none.",
        validator=OneOf(("none", "restart")),
        group=COMMON_GROUP,
        order=14,
        width=Width.MEDIUM,
        display_name="Reload Action",
    ),
)

_ERRORS: Final = ConfigDef(
    Key(
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
    Key(
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
    Key(
        "errors.tolerance",
        Type.STRING,
        "none",
        MEDIUM,
        "What to do with a record that a transformation cannot handle: none fails the task, all "
        "leaves the record out. For a mirror, all means losing records.",
        validator=OneOf(("none", "all")),
        group=ERROR_GROUP,
        order=3,
        width=Width.SHORT,
        display_name="Error Tolerance",
    ),
    Key(
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
    Key(
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

CONNECTOR: Final = _IDENTITY + _CONVERTERS + _CHANGES + _ERRORS
