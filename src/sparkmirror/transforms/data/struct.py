"""Connect's Struct: the values of the fields of a schema, checked when they are put."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_values import (
    Byte,
    ConnectValue,
    Float,
    Integer,
    Short,
    class_name,
)
from sparkmirror.transforms.data.schema import LOGICAL_CLASSES, Schema, SchemaField, SchemaType


class Struct:
    """A value for each field of a schema. Fields that were never put are null."""

    __slots__ = ("_values", "schema")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._values: list[ConnectValue] = [None] * len(schema.fields)

    def put(self, field: SchemaField, value: ConnectValue) -> None:
        """Set the value of a field. Raises DataException if it does not fit the field's schema."""
        if type(value) is not _PLAIN_CLASSES.get(field.schema.type) or field.schema.name:
            validate_value(f'field: "{field.name}"', field.schema, value)
        self._values[field.index] = value

    def put_by_name(self, name: str, value: ConnectValue) -> None:
        """Set the value of the field with that name."""
        self.put(self.field(name), value)

    def get(self, field: SchemaField) -> ConnectValue:
        """The value of a field; its default if it is null."""
        value = self._values[field.index]
        return field.schema.default if value is None else value

    def get_without_default(self, field: SchemaField) -> ConnectValue:
        """The value of a field, also if it is null."""
        return self._values[field.index]

    def entries(self) -> Iterator[tuple[SchemaField, ConnectValue]]:
        """Yield each field with its value, also if it is null."""
        return zip(self.schema.struct_fields, self._values, strict=True)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Struct)
            and self.schema == other.schema
            and self._values == other._values
        )

    def __hash__(self) -> int:
        return hash(self.schema.type)

    def field(self, name: str) -> SchemaField:
        """The field of that name. Raises DataException if there is none."""
        field = self.schema.field(name)
        if field is None:
            raise data_exception(f"{name} is not a valid field name")
        return field


_CLASSES: Final[dict[SchemaType, type[Any]]] = {
    SchemaType.INT8: Byte,
    SchemaType.INT16: Short,
    SchemaType.INT32: Integer,
    SchemaType.INT64: int,
    SchemaType.FLOAT32: Float,
    SchemaType.FLOAT64: float,
    SchemaType.BOOLEAN: bool,
    SchemaType.STRING: str,
    SchemaType.BYTES: bytes,
    SchemaType.ARRAY: list,
    SchemaType.MAP: dict,
    SchemaType.STRUCT: Struct,
}


_TYPES_BY_CLASS: Final = {found: kind for kind, found in _CLASSES.items()}


def schema_type(value: ConnectValue) -> SchemaType | None:
    """The type of a value without a schema; None for the values of logical types."""
    return _TYPES_BY_CLASS.get(type(value))


_PLAIN_CLASSES: Final = {
    kind: found for kind, found in _CLASSES.items() if found not in (list, dict, Struct)
}
"""The classes of values that fit their schema without a further look, if that has no name."""


def validate_value(location: str, schema: Schema, value: ConnectValue) -> None:
    """Check that a value fits a schema. Raises DataException, which names the location."""
    if value is None:
        if not schema.optional:
            raise data_exception(
                f"Invalid value: null used for required {location}, schema type: {schema.type.name}"
            )
        return
    expected = LOGICAL_CLASSES.get(schema.name or "") or _CLASSES[schema.type]
    if type(value) is not expected:
        named = "" if schema.name is None else f' "{schema.name}"'
        raise data_exception(
            f"Invalid Java object for schema{named} with type {schema.type.name}: class "
            f"{class_name(value)} for {location}"
        )
    if isinstance(value, Struct):
        if value.schema is not schema and value.schema != schema:
            raise data_exception(f"Struct schemas do not match for {location}")
    elif isinstance(value, list | dict):
        _validate_items(location, schema, value)


def _validate_items(
    location: str, schema: Schema, value: list[ConnectValue] | dict[ConnectValue, ConnectValue]
) -> None:
    if isinstance(value, list):
        if schema.value_schema is not None:
            for item in value:
                validate_value(f"element of array {location}", schema.value_schema, item)
        return
    for key, item in value.items():
        if schema.key_schema is not None:
            validate_value(f"key of map {location}", schema.key_schema, key)
        if schema.value_schema is not None:
            validate_value(f"value of map {location}", schema.value_schema, item)
