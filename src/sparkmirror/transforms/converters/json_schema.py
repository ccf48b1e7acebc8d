"""Connect's schemas as JSON, as JsonConverter writes them into each record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from sparkmirror.errors import TransformError
from sparkmirror.transforms.data.java_exceptions import data_exception, schema_builder_exception
from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import Schema, SchemaType, struct_schema
from sparkmirror.transforms.data.struct import validate_value

_NAMES: Final = {
    SchemaType.BOOLEAN: "boolean",
    SchemaType.INT8: "int8",
    SchemaType.INT16: "int16",
    SchemaType.INT32: "int32",
    SchemaType.INT64: "int64",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BYTES: "bytes",
    SchemaType.STRING: "string",
    SchemaType.ARRAY: "array",
    SchemaType.MAP: "map",
    SchemaType.STRUCT: "struct",
}
_TYPES: Final = {name: schema_type for schema_type, name in _NAMES.items()}

ToConnect = Callable[[Schema, Any], ConnectValue]
"""Reads a payload of the schema; for defaults."""
ToJson = Callable[[Schema, ConnectValue], Any]
"""Writes a payload of the schema; for defaults."""


def as_connect_schema(node: Any, to_connect: ToConnect) -> Schema | None:
    """The schema that the JSON describes; None for null. Raises DataException."""
    if node is None:
        return None
    if not isinstance(node, dict) or not isinstance(node.get("type"), str):
        raise data_exception("Schema must contain 'type' field")
    schema = _of_type(node, to_connect)
    parameters = node.get("parameters")
    schema = replace(
        schema,
        optional=node.get("optional") is True,
        name=_text(node.get("name")),
        version=_number(node.get("version")),
        doc=_text(node.get("doc")),
        parameters=_parameters(parameters) if isinstance(parameters, dict) else None,
    )
    default = node.get("default")
    return schema if default is None else _with_default(schema, to_connect(schema, default))


def _with_default(schema: Schema, default: ConnectValue) -> Schema:
    try:
        validate_value("default", schema, default)
    except TransformError as error:
        raise schema_builder_exception("Invalid default value", error) from error
    return replace(schema, default=default)


def _of_type(node: dict[str, Any], to_connect: ToConnect) -> Schema:
    schema_type = _TYPES.get(node["type"])
    match schema_type:
        case None:
            raise data_exception(f"Unknown schema type: {node['type']}")
        case SchemaType.ARRAY:
            items = node.get("items")
            if items is None:
                raise data_exception("Array schema did not specify the element type")
            return Schema(schema_type, value_schema=as_connect_schema(items, to_connect))
        case SchemaType.MAP:
            for part in ("keys", "values"):
                if node.get(part) is None:
                    raise data_exception(f"Map schema did not specify the {part[:-1]} type")
            return Schema(
                schema_type,
                key_schema=as_connect_schema(node["keys"], to_connect),
                value_schema=as_connect_schema(node["values"], to_connect),
            )
        case SchemaType.STRUCT:
            return _of_struct(node.get("fields"), to_connect)
        case _:
            return Schema(schema_type)


def _of_struct(nodes: Any, to_connect: ToConnect) -> Schema:
    if not isinstance(nodes, list):
        raise data_exception('Struct schema\'s "fields" argument is not an array.')
    fields = []
    for node in nodes:
        name = node.get("field") if isinstance(node, dict) else None
        if not isinstance(name, str):
            raise data_exception("Struct schema's field name not specified properly")
        schema = as_connect_schema(node, to_connect)
        if schema is not None:
            fields.append((name, schema))
    return struct_schema(fields)


def _parameters(node: dict[str, Any]) -> dict[str, str]:
    for value in node.values():
        if not isinstance(value, str):
            raise data_exception("Schema parameters must have string values.")
    return node


def _text(node: Any) -> str | None:
    return node if isinstance(node, str) else None


def _number(node: Any) -> int | None:
    return node if isinstance(node, int) and not isinstance(node, bool) else None


def as_json_schema(schema: Schema, to_json: ToJson) -> dict[str, Any]:
    """The JSON that describes the schema."""
    node: dict[str, Any] = {"type": _NAMES[schema.type]}
    if schema.type is SchemaType.MAP:
        node["keys"] = _json_schema_or_null(schema.key_schema, to_json)
        node["values"] = _json_schema_or_null(schema.value_schema, to_json)
    elif schema.type is SchemaType.ARRAY:
        node["items"] = _json_schema_or_null(schema.value_schema, to_json)
    elif schema.type is SchemaType.STRUCT:
        node["fields"] = [
            {**as_json_schema(field.schema, to_json), "field": field.name}
            for field in schema.struct_fields
        ]
    node["optional"] = schema.optional
    for name, value in (("name", schema.name), ("version", schema.version), ("doc", schema.doc)):
        if value is not None:
            node[name] = value
    if schema.parameters is not None:
        node["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        node["default"] = to_json(schema, schema.default)
    return node


def _json_schema_or_null(schema: Schema | None, to_json: ToJson) -> dict[str, Any] | None:
    return None if schema is None else as_json_schema(schema, to_json)
