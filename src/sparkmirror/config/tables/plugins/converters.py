"""A catalogue only: the keys of Connect's converters, by class name.

No converter runs here: records are copied as bytes. The REST API lists these keys and validates
them, as Connect does.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.config.definition.config_def import (
    HIGH,
    LOW,
    REQUIRED,
    ConfigDef,
    ConfigKey,
    Width,
)
from sparkmirror.config.definition.java_classes import (
    CONVERTERS,
    JSON_CONVERTER,
    SIMPLE_HEADER_CONVERTER,
    STRING_CONVERTER,
)
from sparkmirror.config.definition.validators import CaseInsensitiveValidString, ValidString
from sparkmirror.config.definition.value_types import Type

CONVERTER_TYPE: Final = "converter.type"

_TYPE: Final = ConfigKey(
    CONVERTER_TYPE,
    Type.STRING,
    REQUIRED,
    LOW,
    "What the converter is for: key, value or header. Written by the worker.",
    validator=ValidString(("key", "value", "header")),
)

_JSON: Final = ConfigDef(
    _TYPE,
    ConfigKey(
        "schemas.enable",
        Type.BOOLEAN,
        True,
        HIGH,
        "Whether each JSON document carries its schema.",
        group="Schemas",
        order=0,
        width=Width.MEDIUM,
        display_name="Enable Schemas",
    ),
    ConfigKey(
        "schemas.cache.size",
        Type.INT,
        1000,
        HIGH,
        "How many schemas are remembered.",
        group="Schemas",
        order=1,
        width=Width.MEDIUM,
        display_name="Schema Cache Size",
    ),
    ConfigKey(
        "schema.content",
        Type.STRING,
        None,
        HIGH,
        "Schema of all documents, instead of one in each.",
        group="Schemas",
        order=2,
        width=Width.MEDIUM,
        display_name="Schema Content",
    ),
    ConfigKey(
        "decimal.format",
        Type.STRING,
        "BASE64",
        LOW,
        "How decimals are written: BASE64 or NUMERIC.",
        validator=CaseInsensitiveValidString(("BASE64", "NUMERIC")),
        group="Serialization",
        order=0,
        width=Width.MEDIUM,
        display_name="Decimal Format",
    ),
    ConfigKey(
        "replace.null.with.default",
        Type.BOOLEAN,
        True,
        LOW,
        "Whether a field that is null counts as its default, if it has one.",
        group="Serialization",
        order=1,
        width=Width.MEDIUM,
        display_name="Replace null with default",
    ),
)

_STRING: Final = ConfigDef(
    _TYPE,
    ConfigKey(
        "converter.encoding",
        Type.STRING,
        "UTF-8",
        HIGH,
        "Character set of the text.",
        width=Width.MEDIUM,
        display_name="Encoding",
    ),
)

CONVERTER_TABLES: Final[dict[str, ConfigDef]] = {
    **{name: ConfigDef(_TYPE) for name in CONVERTERS},
    JSON_CONVERTER: _JSON,
    STRING_CONVERTER: _STRING,
    SIMPLE_HEADER_CONVERTER: ConfigDef(),
}
