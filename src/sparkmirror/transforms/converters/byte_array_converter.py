"""Connect's ByteArrayConverter: bytes are bytes. Java's mirror uses it for keys and values."""

from __future__ import annotations

from typing import Final

from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_values import ConnectValue, class_name
from sparkmirror.transforms.data.schema import (
    BYTES,
    OPTIONAL_BYTES,
    Schema,
    SchemaAndValue,
    SchemaType,
)


class ByteArrayConverter:
    """Bytes as they are, with an optional schema."""

    def to_connect_data(self, data: bytes | None) -> SchemaAndValue:
        """The bytes with their schema."""
        return SchemaAndValue(OPTIONAL_BYTES, data)

    def from_connect_data(self, schema: Schema | None, value: ConnectValue) -> bytes | None:
        """The bytes. Raises DataException if a transformation made something else of them."""
        if schema is not None and schema.type is not SchemaType.BYTES:
            raise data_exception(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
        if value is None or isinstance(value, bytes):
            return value
        raise data_exception(
            f"ByteArrayConverter is not compatible with objects of type class {class_name(value)}"
        )


class MirrorValueConverter(ByteArrayConverter):
    """The values of a mirror: MirrorSourceTask says that they are required, null ones too."""

    def to_connect_data(self, data: bytes | None) -> SchemaAndValue:
        """The bytes with the schema of MirrorSourceTask."""
        return SchemaAndValue(BYTES, data)


class MirrorHeaderConverter(ByteArrayConverter):
    """The headers of a mirror: MirrorSourceTask says that those with a value are required."""

    def to_connect_data(self, data: bytes | None) -> SchemaAndValue:
        """The bytes with the schema of MirrorSourceTask."""
        return _NO_BYTES if data is None else SchemaAndValue(BYTES, data)


_NO_BYTES: Final = SchemaAndValue(OPTIONAL_BYTES, None)
