"""JSON payloads as Connect's data, as the schema says."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_numbers import low_bits
from sparkmirror.transforms.data.java_values import (
    Byte,
    ConnectValue,
    Date,
    Integer,
    Short,
    to_float32,
    wrap,
)
from sparkmirror.transforms.data.logical_types import (
    DATE,
    DECIMAL_NAME,
    MS_PER_DAY,
    TIME,
    TIMESTAMP,
    decimal_from_bytes,
)
from sparkmirror.transforms.data.schema import Schema, SchemaType
from sparkmirror.transforms.data.struct import Struct


def to_connect(schema: Schema, node: Any) -> ConnectValue:
    """The value of a payload, numbers with all digits (`read_exact_json`). Raises DataException."""
    if node is None:
        if schema.default is not None:
            return schema.default
        if schema.optional:
            return None
        raise data_exception(f"Invalid null value for required {schema.type.name} field")
    logical = _LOGICAL.get(schema.name or "")
    if logical:
        return logical(schema, node)
    primitive = _PRIMITIVES.get(schema.type)
    return primitive(node) if primitive else _CONTAINERS[schema.type](schema, node)


def without_schema(node: Any) -> ConnectValue:
    """The value of a payload whose schema is null: integers are Longs, decimals Doubles."""
    if isinstance(node, Decimal):
        return float(node) + 0.0
    if isinstance(node, list):
        return [without_schema(item) for item in node]
    if isinstance(node, dict):
        return {name: without_schema(item) for name, item in node.items()}
    return wrap(node, 64) if type(node) is int else node


def node_type(node: Any) -> str:
    """The name that Jackson has for the kind of a node."""
    return _NODE_TYPES.get(type(node), "NUMBER")


_NODE_TYPES: Final = {
    dict: "OBJECT",
    list: "ARRAY",
    str: "STRING",
    bool: "BOOLEAN",
    type(None): "NULL",
}


def _is_number(node: Any) -> bool:
    return isinstance(node, int | Decimal) and not isinstance(node, bool)


def _integer(node: Any, bits: int) -> int:
    """The lowest bits of a number; zero for anything else, as Jackson answers."""
    return low_bits(node, bits) if _is_number(node) else 0


def _double(node: Any) -> float:
    return float(Decimal(node)) if _is_number(node) else 0.0


def _bytes(node: Any) -> bytes | None:
    if not isinstance(node, str):
        return None
    try:
        return base64.b64decode(node, validate=True)
    except ValueError as error:
        raise data_exception("Invalid bytes field") from error


_PRIMITIVES: Final[dict[SchemaType, Callable[[Any], ConnectValue]]] = {
    SchemaType.BOOLEAN: lambda node: node is True,
    SchemaType.INT8: lambda node: Byte(wrap(_integer(node, 32), 8)),
    SchemaType.INT16: lambda node: Short(wrap(_integer(node, 32), 16)),
    SchemaType.INT32: lambda node: Integer(_integer(node, 32)),
    SchemaType.INT64: lambda node: _integer(node, 64),
    SchemaType.FLOAT32: lambda node: to_float32(_double(node)),
    SchemaType.FLOAT64: _double,
    SchemaType.STRING: lambda node: node if isinstance(node, str) else None,
    SchemaType.BYTES: _bytes,
}


def _array(schema: Schema, node: Any) -> list[ConnectValue]:
    items = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [_item(schema.value_schema, item) for item in items]


def _map(schema: Schema, node: Any) -> dict[ConnectValue, ConnectValue]:
    if schema.key_schema is not None and schema.key_schema.type is SchemaType.STRING:
        if not isinstance(node, dict):
            raise data_exception(
                "Maps with string fields should be encoded as JSON objects, but found "
                f"{node_type(node)}"
            )
        return {name: _item(schema.value_schema, item) for name, item in node.items()}
    if not isinstance(node, list):
        raise data_exception(
            "Maps with non-string fields should be encoded as JSON arrays of tuples, but found "
            f"{node_type(node)}"
        )
    return dict(_entry(schema, entry) for entry in node)


def _entry(schema: Schema, entry: Any) -> tuple[ConnectValue, ConnectValue]:
    if not isinstance(entry, list):
        raise data_exception(f"Found invalid map entry instead of array tuple: {node_type(entry)}")
    if len(entry) != 2:
        raise data_exception(f"Found invalid map entry, expected length 2 but found :{len(entry)}")
    key = _item(schema.key_schema, entry[0])
    if isinstance(key, list | dict):  # Java can; a dict of Python cannot
        raise data_exception(f"Keys of maps must not be {node_type(entry[0])}")
    return key, _item(schema.value_schema, entry[1])


def _item(schema: Schema | None, node: Any) -> ConnectValue:
    return without_schema(node) if schema is None else to_connect(schema, node)


def _struct(schema: Schema, node: Any) -> Struct:
    if not isinstance(node, dict):
        raise data_exception(
            f"Structs should be encoded as JSON objects, but found {node_type(node)}"
        )
    struct = Struct(schema)
    for field in schema.struct_fields:
        struct.put(field, to_connect(field.schema, node.get(field.name)))
    return struct


_CONTAINERS: Final[dict[SchemaType, Callable[[Schema, Any], ConnectValue]]] = {
    SchemaType.ARRAY: _array,
    SchemaType.MAP: _map,
    SchemaType.STRUCT: _struct,
}


def _date(_: Schema, node: Any) -> Date:
    return Date(_logical_number("Date", "integer", node, 32) * MS_PER_DAY)


def _time(_: Schema, node: Any) -> Date:
    return Date(_logical_number("Time", "integer", node, 32))


def _timestamp(_: Schema, node: Any) -> Date:
    return Date(wrap(_logical_number("Timestamp", "integral", node, 1 << 16), 64))


def _logical_number(name: str, kind: str, node: Any, bits: int) -> int:
    if type(node) is int and wrap(node, bits) == node:
        return node
    raise data_exception(
        f"Invalid type for {name}, underlying representation should be {kind} but was "
        f"{node_type(node)}"
    )


def _decimal(schema: Schema, node: Any) -> Decimal:
    if _is_number(node):
        return Decimal(node)
    if not isinstance(node, str):
        raise data_exception(
            "Invalid type for Decimal, underlying representation should be numeric or bytes but "
            f"was {node_type(node)}"
        )
    try:
        return decimal_from_bytes(schema, base64.b64decode(node, validate=True))
    except (ValueError, TransformError) as error:
        raise data_exception("Invalid bytes for Decimal field") from error


_LOGICAL: Final[dict[str, Callable[[Schema, Any], ConnectValue]]] = {
    DATE.name or "": _date,
    TIME.name or "": _time,
    TIMESTAMP.name or "": _timestamp,
    DECIMAL_NAME: _decimal,
}
