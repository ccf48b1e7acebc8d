"""What Connect's transformations and predicates ask for, by class name.

Here those that look at topics and headers, which a mirror can use; those that look into keys and
values are in `field_transforms`.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.config.classes import PREDICATES, TRANSFORMATIONS
from sparkmirror.config.definition import HIGH, MEDIUM, REQUIRED, ConfigDef, Key
from sparkmirror.config.tables.field_transforms import FIELD_TRANSFORMS, KEEP_DEFAULTS
from sparkmirror.config.validators import (
    AllOf,
    JavaRegex,
    NonEmptyList,
    NonEmptyString,
    NonNull,
    OneOf,
)
from sparkmirror.config.value import Type

_DROP_HEADERS: Final = ConfigDef(
    Key(
        "headers",
        Type.LIST,
        REQUIRED,
        HIGH,
        "Names of the headers to take away.",
        validator=NonEmptyList(),
    ),
)

_HEADER_FROM: Final = ConfigDef(
    Key(
        "fields",
        Type.LIST,
        REQUIRED,
        HIGH,
        "Fields to make headers of.",
        validator=NonEmptyList(),
    ),
    Key(
        "headers",
        Type.LIST,
        REQUIRED,
        HIGH,
        "Names of those headers, in the order of fields.",
        validator=NonEmptyList(),
    ),
    Key(
        "operation",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Whether the field stays in the record (copy) or not (move).",
        validator=OneOf(("move", "copy")),
    ),
    KEEP_DEFAULTS,
)

_INSERT_HEADER: Final = ConfigDef(
    Key("header", Type.STRING, REQUIRED, HIGH, "Name of the header to add.", validator=NonNull()),
    Key(
        "value.literal",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Value of that header, the same for every record.",
        validator=NonNull(),
    ),
)

_REGEX_ROUTER: Final = ConfigDef(
    Key(
        "regex",
        Type.STRING,
        REQUIRED,
        HIGH,
        "Java regular expression that a whole topic name must match to be changed.",
        validator=JavaRegex(),
    ),
    Key(
        "replacement",
        Type.STRING,
        REQUIRED,
        HIGH,
        "New topic name; $1 stands for the first group of the expression.",
    ),
)

_TIMESTAMP_ROUTER: Final = ConfigDef(
    Key(
        "topic.format",
        Type.STRING,
        "${topic}-${timestamp}",
        HIGH,
        "New topic name, made of ${topic} and ${timestamp}.",
    ),
    Key(
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
        Key(
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
        Key(
            "pattern",
            Type.STRING,
            REQUIRED,
            MEDIUM,
            "Java regular expression that a whole topic name must match.",
            validator=AllOf((NonEmptyString(), JavaRegex())),
        ),
    ),
}


def _table(class_name: str) -> ConfigDef:
    """Key and value variants of a transformation ask for the same."""
    return _BY_NAME[class_name.rpartition(".")[2].partition("$")[0]]


TRANSFORMATION_TABLES: Final = {name: _table(name) for name in TRANSFORMATIONS}
PREDICATE_TABLES: Final = {name: _table(name) for name in PREDICATES}
