"""The keys of Connect's transformations and predicates, by class name.

The package `transforms` has the classes themselves. Transformations of fields are in
`field_transforms`.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import HIGH, MEDIUM, REQUIRED, ConfigDef, ConfigKey
from sparkmirror.config.definition.java_classes import PREDICATES, TRANSFORMATIONS
from sparkmirror.config.definition.transform_validators import NonDuplicateList
from sparkmirror.config.definition.validators import (
    CompositeValidator,
    NonEmptyListValidator,
    NonEmptyString,
    NonNullValidator,
    RegexValidator,
    ValidString,
)
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.tables.plugins.field_transforms import FIELD_TRANSFORMS, KEEP_DEFAULTS

_DROP_HEADERS: Final = ConfigDef(
    ConfigKey(
        "headers",
        Type.LIST,
        REQUIRED,
        HIGH,
        "Names of the headers to take away.",
        validator=NonDuplicateList(),
    ),
)

_HEADER_FROM: Final = ConfigDef(
    ConfigKey(
        "fields",
        Type.LIST,
        REQUIRED,
        HIGH,
        "Fields to make headers of.",
        validator=NonEmptyListValidator(),
    ),
    ConfigKey(
        "headers",
        Type.LIST,
        REQUIRED,
        HIGH,
        "Names of those headers, in the order of fields.",
        validator=NonEmptyListValidator(),
    ),
    ConfigKey(
        "operation",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Whether the field stays in the record (copy) or not (move).",
        validator=ValidString(("move", "copy")),
    ),
    KEEP_DEFAULTS,
)

_INSERT_HEADER: Final = ConfigDef(
    ConfigKey(
        "header",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Name of the header to add.",
        validator=NonNullValidator(),
    ),
    ConfigKey(
        "value.literal",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Value of that header, the same for every record.",
        validator=NonNullValidator(),
    ),
)

_REGEX_ROUTER: Final = ConfigDef(
    ConfigKey(
        "regex",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Java regular expression that a whole topic name must match to be changed.",
        validator=RegexValidator(),
    ),
    ConfigKey(
        "replacement",
        Type.STRING,
        REQUIRED,
        HIGH,
        "New topic name; $1 stands for the first group of the expression.",
    ),
)

_TIMESTAMP_ROUTER: Final = ConfigDef(
    ConfigKey(
        "topic.format",
        Type.STRING,
        "${topic}-${timestamp}",
        HIGH,
        "New topic name, made of ${topic} and ${timestamp}.",
    ),
    ConfigKey(
        "timestamp.format",
        Type.STRING,
        "yyyyMMdd",
        HIGH,
        "How the record's time is written into the name, in Java's SimpleDateFormat notation.",
    ),
)

_BY_NAME: Final = {
    "DropHeaders": _DROP_HEADERS,
    "Filter": ConfigDef(),
    "HeaderFrom": _HEADER_FROM,
    "InsertHeader": _INSERT_HEADER,
    "RegexRouter": _REGEX_ROUTER,
    "TimestampRouter": _TIMESTAMP_ROUTER,
    **FIELD_TRANSFORMS,
    "HasHeaderKey": ConfigDef(
        ConfigKey(
            "name",
            Type.STRING,
            REQUIRED,
            MEDIUM,
            "Name of the header that makes the condition true.",
            validator=NonEmptyString(),
        ),
    ),
    "RecordIsTombstone": ConfigDef(),
    "TopicNameMatches": ConfigDef(
        ConfigKey(
            "pattern",
            Type.STRING,
            REQUIRED,
            MEDIUM,
            "Java regular expression that a whole topic name must match.",
            validator=CompositeValidator((NonEmptyString(), RegexValidator())),
        ),
    ),
}


def _table(class_name: str) -> ConfigDef:
    """Key and value variants of a transformation ask for the same."""
    return _BY_NAME[class_name.rpartition(".")[2].partition("$")[0]]


TRANSFORMATION_TABLES: Final = {name: _table(name) for name in TRANSFORMATIONS}
PREDICATE_TABLES: Final = {name: _table(name) for name in PREDICATES}
