"""How keys, values and headers are read and written, by the names in a connector's config.

Without a format they are bytes, as Java's mirror has them: field transformations then fail as they
do there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.definition.value_types import Props
from sparkmirror.config.tables.transform_additions import (
    BYTES_FORMAT,
    HEADER_FORMAT,
    KEY_FORMAT,
    TRANSFORM_ADDITIONS,
    VALUE_FORMAT,
    format_key,
)
from sparkmirror.transforms.converters.byte_array_converter import (
    ByteArrayConverter,
    MirrorHeaderConverter,
    MirrorValueConverter,
)
from sparkmirror.transforms.converters.converter import Converter
from sparkmirror.transforms.converters.json_converter import (
    PlainJsonConverter,
    SchemaJsonConverter,
)
from sparkmirror.transforms.converters.string_converter import StringConverter
from sparkmirror.transforms.data.java_environment import JavaEnvironment

__all__ = ("MIRROR_BYTES", "RecordConverters", "format_key", "record_converters")

_FORMATS: Final[dict[str, Callable[[JavaEnvironment], Converter]]] = {
    "json": lambda _: PlainJsonConverter(),
    "json-with-schema": lambda _: SchemaJsonConverter(),
    "string": lambda environment: StringConverter(environment.zone),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordConverters:
    """The converters of the three parts of a record."""

    key: Converter
    value: Converter
    header: Converter


MIRROR_BYTES: Final = RecordConverters(
    key=ByteArrayConverter(), value=MirrorValueConverter(), header=MirrorHeaderConverter()
)
"""What MirrorSourceTask makes of the records that it reads, and ByteArrayConverter writes."""


def record_converters(props: Props, environment: JavaEnvironment) -> RecordConverters:
    """The converters that a connector's config names. Raises ConfigError for other names."""
    formats = TRANSFORM_ADDITIONS.parse(props)

    def chosen(key: str, mirror_bytes: Converter) -> Converter:
        name = formats[key]
        return mirror_bytes if name == BYTES_FORMAT else _FORMATS[str(name)](environment)

    return RecordConverters(
        key=chosen(KEY_FORMAT, MIRROR_BYTES.key),
        value=chosen(VALUE_FORMAT, MIRROR_BYTES.value),
        header=chosen(HEADER_FORMAT, MIRROR_BYTES.header),
    )
