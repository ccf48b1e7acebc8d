"""What Connect's transformations of fields ask for.

They need keys or values with fields, so they are of no use to a mirror that copies bytes; they are
here because people may name them and tools list them.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition import HIGH, LOW, MEDIUM, REQUIRED, ConfigDef, Key
from sparkmirror.config.validators import (
    ColonPairs,
    NonEmptyList,
    NonEmptyString,
    OneOf,
    OneOfAnyCase,
)
from sparkmirror.config.value import Type

KEEP_DEFAULTS: Final = Key(
    "replace.null.with.default",
    Type.BOOLEAN,
    True,
    MEDIUM,
    "Whether a field that is null counts as its default, if it has one.",
)

_INSERT_FIELD: Final = ConfigDef(
    Key("topic.field", Type.STRING, None, MEDIUM, "Field that gets the topic's name."),
    Key("partition.field", Type.STRING, None, MEDIUM, "Field that gets the partition's number."),
    Key("offset.field", Type.STRING, None, MEDIUM, "Field that gets the offset; sinks only."),
    Key("timestamp.field", Type.STRING, None, MEDIUM, "Field that gets the record's time."),
    Key("static.field", Type.STRING, None, MEDIUM, "Field that gets the text in static.value."),
    Key("static.value", Type.STRING, None, MEDIUM, "Text for the field named in static.field."),
    KEEP_DEFAULTS,
)

_TIMESTAMP_CONVERTER: Final = ConfigDef(
    Key(
        "field",
        Type.STRING,
        "",
        HIGH,
        "Field that holds the time; empty if the whole key or value is one.",
    ),
    Key(
        "target.type",
        Type.STRING,
        REQUIRED,
        HIGH,
        "What to make of it: string, unix, Date, Time or Timestamp.",
        validator=OneOf(("string", "unix", "Date", "Time", "Timestamp")),
    ),
    Key(
        "format",
        Type.STRING,
        "",
        MEDIUM,
        "How times are written as text, in Java's SimpleDateFormat notation.",
    ),
    Key(
        "unix.precision",
        Type.STRING,
        "milliseconds",
        LOW,
        "Unit of times that are numbers.",
        validator=OneOf(("nanoseconds", "microseconds", "milliseconds", "seconds")),
    ),
    KEEP_DEFAULTS,
)

FIELD_TRANSFORMS: Final = {
    "Cast": ConfigDef(
        Key(
            "spec",
            Type.LIST,
            REQUIRED,
            HIGH,
            "Fields and their new types as field:type, or one type for the whole key or value.",
            validator=NonEmptyList(),
        ),
        KEEP_DEFAULTS,
    ),
    "ExtractField": ConfigDef(
        Key("field", Type.STRING, REQUIRED, MEDIUM, "Field that replaces the whole."),
        KEEP_DEFAULTS,
        Key(
            "field.syntax.version",
            Type.STRING,
            "V1",
            HIGH,
            "How names of fields are read: V1 as they stand, V2 with dots leading into nested "
            "fields.",
            validator=OneOfAnyCase(("V1", "V2")),
        ),
    ),
    "Flatten": ConfigDef(
        Key("delimiter", Type.STRING, ".", MEDIUM, "Text between the names of nested fields."),
    ),
    "HoistField": ConfigDef(
        Key("field", Type.STRING, REQUIRED, MEDIUM, "Name of the one field around the whole."),
    ),
    "InsertField": _INSERT_FIELD,
    "MaskField": ConfigDef(
        Key(
            "fields",
            Type.LIST,
            REQUIRED,
            HIGH,
            "Fields whose values are hidden.",
            validator=NonEmptyList(),
        ),
        Key(
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
        Key("exclude", Type.LIST, (), MEDIUM, "Fields to take away; wins over include."),
        Key("include", Type.LIST, (), MEDIUM, "Fields to keep; empty keeps all."),
        Key(
            "renames",
            Type.LIST,
            (),
            MEDIUM,
            "New names of fields, as old:new.",
            validator=ColonPairs(),
        ),
        KEEP_DEFAULTS,
    ),
    "SetSchemaMetadata": ConfigDef(
        Key("schema.name", Type.STRING, None, HIGH, "New name of the schema."),
        Key("schema.version", Type.INT, None, HIGH, "New version of the schema."),
        KEEP_DEFAULTS,
    ),
    "TimestampConverter": _TIMESTAMP_CONVERTER,
    "ValueToKey": ConfigDef(
        Key(
            "fields",
            Type.LIST,
            REQUIRED,
            HIGH,
            "Fields of the value that become the key.",
            validator=NonEmptyList(),
        ),
        KEEP_DEFAULTS,
    ),
}
