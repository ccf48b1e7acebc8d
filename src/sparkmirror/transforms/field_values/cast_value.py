"""How Cast turns a value into another type: as Java's numbers, booleans and texts do."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import tzinfo
from decimal import Decimal
from typing import Final

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_numbers import (
    parse_float,
    parse_integer,
    to_int,
    to_long,
)
from sparkmirror.transforms.data.java_text import to_java_string
from sparkmirror.transforms.data.java_values import (
    Byte,
    ConnectValue,
    Date,
    Float,
    Integer,
    Short,
    class_name,
    to_float32,
    widen,
    wrap,
)
from sparkmirror.transforms.data.logical_types import encode_logical_type
from sparkmirror.transforms.data.schema import Schema, SchemaType
from sparkmirror.transforms.data.struct import schema_type
from sparkmirror.transforms.data.values_text import date_text
from sparkmirror.transforms.field_values.cast_spec import OUTPUT_TYPES

_INPUT_TYPES: Final = (*OUTPUT_TYPES, SchemaType.BYTES)
_NUMBER_FORMAT: Final = "java.lang.NumberFormatException"


def cast_value_to_type(
    schema: Schema | None, value: ConnectValue, target: SchemaType, zone: tzinfo
) -> ConnectValue:
    """The value as the target type; null stays null. Raises DataException."""
    if value is None:
        return None
    found = schema.type if schema else schema_type(value)
    if found is None:
        raise data_exception(
            f"Cast transformation was passed a value of type class {class_name(value)} which is "
            "not supported by Connect's data API"
        )
    if found not in _INPUT_TYPES:
        supported = ", ".join(each.name for each in _INPUT_TYPES)
        raise data_exception(
            f"Cast transformation does not support casting from {found.name}; supported types are "
            f"[{supported}]"
        )
    if target is SchemaType.STRING:
        return _to_string(value, zone)
    if schema is not None and schema.name is not None:
        value = encode_logical_type(schema, value)
    try:
        return _CASTS[target](value)
    except TransformError as error:
        if error.java_class != _NUMBER_FORMAT:
            raise
        raise data_exception(
            f"Value ({value}) was out of range for requested data type", error
        ) from error


def _to_string(value: ConnectValue, zone: tzinfo) -> str:
    if isinstance(value, Date):
        return date_text(value, zone)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return to_java_string(value, zone)


def _to_integer(value: ConnectValue, bits: int) -> int:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return parse_integer(value, bits)
    if not isinstance(value, int | float | Decimal):
        raise _unexpected_type(value)
    return to_long(value) if bits == 64 else wrap(to_int(value), bits)


def _to_double(value: ConnectValue) -> float:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        return parse_float(value)
    if isinstance(value, Float):
        return widen(value)
    if not isinstance(value, int | float | Decimal):
        raise _unexpected_type(value)
    return float(value)


def _to_boolean(value: ConnectValue) -> bool:
    if isinstance(value, str):
        return value.lower() == "true"
    if not isinstance(value, int | float | Decimal):
        raise _unexpected_type(value)
    return to_long(value) != 0


def _unexpected_type(value: ConnectValue) -> TransformError:
    return data_exception(f"Unexpected type in Cast transformation: class {class_name(value)}")


_CASTS: Final[dict[SchemaType, Callable[[ConnectValue], ConnectValue]]] = {
    SchemaType.INT8: lambda value: Byte(_to_integer(value, 8)),
    SchemaType.INT16: lambda value: Short(_to_integer(value, 16)),
    SchemaType.INT32: lambda value: Integer(_to_integer(value, 32)),
    SchemaType.INT64: lambda value: int(_to_integer(value, 64)),
    SchemaType.FLOAT32: lambda value: to_float32(_to_double(value)),
    SchemaType.FLOAT64: _to_double,
    SchemaType.BOOLEAN: _to_boolean,
}
