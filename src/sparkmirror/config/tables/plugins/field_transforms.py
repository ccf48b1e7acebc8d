"""The keys of Connect's transformations of fields, by class name."""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import (
    HIGH,
    LOW,
    MEDIUM,
    REQUIRED,
    ConfigDef,
    ConfigKey,
)
from sparkmirror.config.definition.transform_validators import (
    CastSpec,
    NonDuplicateList,
    RenameMappings,
)
from sparkmirror.config.definition.validators import (
    CaseInsensitiveValidString,
    NonEmptyString,
    ValidString,
)
from sparkmirror.config.definition.value_types import Type

KEEP_DEFAULTS: Final = ConfigKey(
    "replace.null.with.default",
    Type.BOOLEAN,
    True,
    MEDIUM,
    "Whether a field that is null counts as its default, if it has one.",
)

_INSERT_FIELD: Final = ConfigDef(
    ConfigKey("topic.field", Type.STRING, None, MEDIUM, "Field that gets the topic's name."),
    ConfigKey(
        "partition.field", Type.STRING, None, MEDIUM, "Field that gets the partition's number."
    ),
    ConfigKey("offset.field", Type.STRING, None, MEDIUM, "Field that gets the offset; sinks only."),
    ConfigKey("timestamp.field", Type.STRING, None, MEDIUM, "Field that gets the record's time."),
    ConfigKey(
        "static.field", Type.STRING, None, MEDIUM, "Field that gets the text in static.value."
    ),
    ConfigKey(
        "static.value", Type.STRING, None, MEDIUM, "Text for the field named in static.field."
    ),
    KEEP_DEFAULTS,
)

_TIMESTAMP_CONVERTER: Final = ConfigDef(
    ConfigKey(
        "field",
        Type.STRING,
        "",
        HIGH,
        "Field that holds the time; empty if the whole key or value is one.",
    ),
    ConfigKey(
        "target.type",
        Type.STRING,
        REQUIRED,
        HIGH,
        "What to make of it: string, unix, Date, Time or Timestamp.",
        validator=ValidString(("string", "unix", "Date", "Time", "Timestamp")),
    ),
    ConfigKey(
        "format",
        Type.STRING,
        "",
        MEDIUM,
        "How times are written as text, in Java's SimpleDateFormat notation.",
    ),
    ConfigKey(
        "unix.precision",
        Type.STRING,
        "milliseconds",
        LOW,
        "Unit of times that are numbers.",
        validator=ValidString(("nanoseconds", "microseconds", "milliseconds", "seconds")),
    ),
    KEEP_DEFAULTS,
)

FIELD_TRANSFORMS: Final = {
    "Cast": ConfigDef(
        ConfigKey(
            "spec",
            Type.LIST,
            REQUIRED,
            HIGH,
            "Fields and their new types as field:type, or one type for the whole key or value.",
            validator=CastSpec(),
        ),
        KEEP_DEFAULTS,
    ),
    "ExtractField": ConfigDef(
        ConfigKey("field", Type.STRING, REQUIRED, MEDIUM, "Field that replaces the whole."),
        KEEP_DEFAULTS,
        ConfigKey(
            "field.syntax.version",
            Type.STRING,
            "V1",
            HIGH,
            "How names of fields are read: V1 as they stand, V2 with dots leading into nested "
            "fields.",
            validator=CaseInsensitiveValidString(("V1", "V2")),
        ),
    ),
    "Flatten": ConfigDef(
        ConfigKey(
            "delimiter", Type.STRING, ".", MEDIUM, "Text between the names of nested fields."
        ),
    ),
    "HoistField": ConfigDef(
        ConfigKey(
            "field", Type.STRING, REQUIRED, MEDIUM, "Name of the one field around the whole."
        ),
    ),
    "InsertField": _INSERT_FIELD,
    "MaskField": ConfigDef(
        ConfigKey(
            "fields",
            Type.LIST,
            REQUIRED,
            HIGH,
            "Fields whose values are hidden.",
            validator=NonDuplicateList(),
        ),
        ConfigKey(
            "replacement",
            Type.STRING,
            None,
            LOW,
            "What is written instead; left out, an empty value of the field's type.",
            validator=NonEmptyString(),
        ),
        KEEP_DEFAULTS,
    ),
    "ReplaceField": ConfigDef(
        ConfigKey(
            "exclude",
            Type.LIST,
            (),
            MEDIUM,
            "Fields to take away; wins over include.",
            validator=NonDuplicateList(may_be_empty=True),
        ),
        ConfigKey(
            "include",
            Type.LIST,
            (),
            MEDIUM,
            "Fields to keep; empty keeps all.",
            validator=NonDuplicateList(may_be_empty=True),
        ),
        ConfigKey(
            "renames",
            Type.LIST,
            (),
            MEDIUM,
            "New names of fields, as old:new.",
            validator=RenameMappings(),
        ),
        KEEP_DEFAULTS,
    ),
    "SetSchemaMetadata": ConfigDef(
        ConfigKey("schema.name", Type.STRING, None, HIGH, "New name of the schema."),
        ConfigKey("schema.version", Type.INT, None, HIGH, "New version of the schema."),
        KEEP_DEFAULTS,
    ),
    "TimestampConverter": _TIMESTAMP_CONVERTER,
    "ValueToKey": ConfigDef(
        ConfigKey(
            "fields",
            Type.LIST,
            REQUIRED,
            HIGH,
            "Fields of the value that become the key.",
            validator=NonDuplicateList(),
        ),
        KEEP_DEFAULTS,
    ),
}
