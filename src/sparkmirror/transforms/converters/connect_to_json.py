"""Connect's data as JSON payloads."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_text import float_text
from sparkmirror.transforms.data.java_values import (
    Byte,
    ConnectValue,
    Date,
    Float,
    Integer,
    Short,
    class_name,
)
from sparkmirror.transforms.data.logical_types import (
    DATE,
    DECIMAL_NAME,
    TIME,
    TIMESTAMP,
    date_from_logical,
    decimal_to_bytes,
    time_from_logical,
)
from sparkmirror.transforms.data.schema import Schema, SchemaType
from sparkmirror.transforms.data.struct import Struct, schema_type


def to_json(schema: Schema | None, value: ConnectValue) -> Any:
    """The payload of a value. Raises DataException if the value does not fit the schema."""
    if value is None:
        return _null(schema)
    logical = _LOGICAL.get(schema.name or "") if schema else None
    if schema and logical:
        return logical(schema, value)
    kind = schema.type if schema else schema_type(value)
    if kind is None:
        raise data_exception(
            f"Java class class {class_name(value)} does not have corresponding schema type."
        )
    if type(value) not in _PYTHON_TYPES[kind]:
        raise data_exception(f"Invalid type for {kind.name}: class {class_name(value)}")
    match kind:
        case SchemaType.ARRAY:
            return [to_json(schema.value_schema if schema else None, item) for item in value]
        case SchemaType.MAP:
            return _map(schema, value)
        case SchemaType.STRUCT:
            return _struct(schema, value)
        case SchemaType.BYTES:
            return base64.b64encode(value).decode()
        case SchemaType.FLOAT32 | SchemaType.FLOAT64:
            return finite_or_text(value)
        case _:
            return value


def finite_or_text(value: float) -> float | str:
    """A number; Infinity and NaN as texts, since JSON has none."""
    return value if math.isfinite(value) else float_text(value)


_PYTHON_TYPES: Final[dict[SchemaType, tuple[type[Any], ...]]] = {
    SchemaType.BOOLEAN: (bool,),
    SchemaType.INT8: (Byte,),
    SchemaType.INT16: (Short,),
    SchemaType.INT32: (Integer,),
    SchemaType.INT64: (int,),
    SchemaType.FLOAT32: (Float,),
    SchemaType.FLOAT64: (float,),
    SchemaType.STRING: (str,),
    SchemaType.BYTES: (bytes,),
    SchemaType.ARRAY: (list,),
    SchemaType.MAP: (dict,),
    SchemaType.STRUCT: (Struct,),
}


def _null(schema: Schema | None) -> Any:
    if schema is None:
        return None
    if schema.default is not None:
        return to_json(schema, schema.default)
    if schema.optional:
        return None
    raise data_exception(
        "Conversion error: null value for field that is required and has no default value"
    )


def _map(schema: Schema | None, value: dict[ConnectValue, ConnectValue]) -> Any:
    keys = schema.key_schema if schema else None
    values = schema.value_schema if schema else None
    as_object = (
        keys.type is SchemaType.STRING if keys else all(isinstance(key, str) for key in value)
    )
    if as_object:
        return {key: to_json(values, item) for key, item in value.items()}
    return [[to_json(keys, key), to_json(values, item)] for key, item in value.items()]


def _struct(schema: Schema | None, value: Struct) -> dict[str, Any]:
    if schema is None or (value.schema is not schema and value.schema != schema):
        raise data_exception("Mismatching schema.")
    return {field.name: to_json(field.schema, item) for field, item in value.entries()}


def _checked_date(name: str, value: ConnectValue) -> Date:
    if isinstance(value, Date):
        return value
    raise data_exception(
        f"Invalid type for {name}, expected Date but was class {class_name(value)}"
    )


def _decimal(schema: Schema, value: ConnectValue) -> str:
    if not isinstance(value, Decimal):
        raise data_exception(
            f"Invalid type for Decimal, expected BigDecimal but was class {class_name(value)}"
        )
    return base64.b64encode(decimal_to_bytes(schema, value)).decode()


_LOGICAL: Final[dict[str, Callable[[Schema, ConnectValue], Any]]] = {
    DATE.name or "": lambda _, value: date_from_logical(_checked_date("Date", value)),
    TIME.name or "": lambda _, value: time_from_logical(_checked_date("Time", value)),
    TIMESTAMP.name or "": lambda _, value: _checked_date("Timestamp", value).time_ms,
    DECIMAL_NAME: _decimal,
}
