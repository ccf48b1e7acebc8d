"""Connect's JsonConverter: plain JSON, or JSON in an envelope with its schema."""

from __future__ import annotations

import json
import marshal
from typing import Any, Final

from sparkmirror.transforms.converters.connect_to_json import to_json
from sparkmirror.transforms.converters.json_reader import read_exact_json, read_json
from sparkmirror.transforms.converters.json_schema import as_connect_schema, as_json_schema
from sparkmirror.transforms.converters.json_to_connect import to_connect, without_schema
from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import NULL, Schema, SchemaAndValue
from sparkmirror.transforms.data.schema_cache import SchemaCache

_ENVELOPE: Final = {"schema", "payload"}
_MAX_SCHEMAS: Final = 1000
_WITHOUT_REFERENCES: Final = 2
"""The version of marshal's format that depends on the values only, not on their identity."""


def _write_json(node: Any) -> bytes:
    text = _ENCODER.encode(node)
    try:
        return text.encode()
    except UnicodeEncodeError:  # Half of a surrogate pair can be written only as an escape.
        return json.dumps(node, separators=(",", ":")).encode()


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_PLAIN_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False,
    separators=(",", ":"),
    allow_nan=False,
    default=lambda value: to_json(None, value),
)


class PlainJsonConverter:
    """JsonConverter with `schemas.enable=false`."""

    def to_connect_data(self, data: bytes | None) -> SchemaAndValue:
        """The document. The text null and an empty document are null."""
        return NULL if data is None else SchemaAndValue(None, read_json(data))

    def from_connect_data(self, schema: Schema | None, value: ConnectValue) -> bytes | None:
        """The document. A schema decides how dates and decimals are written."""
        if schema is not None:
            return _write_json(to_json(schema, value))
        if value is None:
            return None
        try:
            return _PLAIN_ENCODER.encode(value).encode()
        except ValueError:  # Infinity, NaN, or half of a surrogate pair
            return _write_json(to_json(None, value))


class SchemaJsonConverter:
    """JsonConverter with `schemas.enable=true`."""

    def __init__(self) -> None:
        self._read_schemas: dict[bytes, Schema | None] = {}
        self._written_schemas = SchemaCache(
            lambda schema: _write_json(as_json_schema(schema, to_json))
        )

    def to_connect_data(self, data: bytes | None) -> SchemaAndValue:
        """The payload of the envelope, as its schema says."""
        if data is None:
            return NULL
        envelope = read_exact_json(data)
        if not isinstance(envelope, dict) or envelope.keys() != _ENVELOPE:
            raise data_exception(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may '
                "not contain additional fields. If you are trying to deserialize plain JSON data, "
                "set schemas.enable=false in your converter configuration."
            )
        schema = self._schema(envelope["schema"])
        payload = envelope["payload"]
        value = without_schema(payload) if schema is None else to_connect(schema, payload)
        return SchemaAndValue(schema, value)

    def from_connect_data(self, schema: Schema | None, value: ConnectValue) -> bytes | None:
        """The envelope of schema and payload; None for null without a schema."""
        if schema is None and value is None:
            return None
        written = b"null" if schema is None else self._written_schemas.get(schema)
        payload = _write_json(to_json(schema, value))
        return b'{"schema":' + written + b',"payload":' + payload + b"}"

    def _schema(self, node: Any) -> Schema | None:
        """The schema of a node. Equal nodes give the same object, so that caches know it."""
        key = _schema_key(node)
        if key not in self._read_schemas:
            if len(self._read_schemas) >= _MAX_SCHEMAS:
                self._read_schemas.clear()
            self._read_schemas[key] = as_connect_schema(node, to_connect)
        return self._read_schemas[key]


def _schema_key(node: Any) -> bytes:
    """Bytes that are the same for equal nodes, quickly made. Only defaults can be decimals."""
    try:
        return marshal.dumps(node, _WITHOUT_REFERENCES)
    except ValueError:
        return json.dumps(node, default=repr).encode()
