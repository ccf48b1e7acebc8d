"""Connect's JsonConverter: plain JSON, or JSON in an envelope with its schema."""

from __future__ import annotations

import json
from typing import Any, Final

from sparkmirror.transforms.converters.connect_to_json import to_json
from sparkmirror.transforms.converters.json_envelope import EnvelopeReader
from sparkmirror.transforms.converters.json_reader import read_json
from sparkmirror.transforms.converters.json_schema import as_json_schema
from sparkmirror.transforms.converters.json_to_connect import to_connect, without_schema
from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import NULL, Schema, SchemaAndValue
from sparkmirror.transforms.data.schema_cache import SchemaCache


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
        self._envelopes = EnvelopeReader()
        self._written_schemas = SchemaCache(
            lambda schema: _write_json(as_json_schema(schema, to_json))
        )

    def to_connect_data(self, data: bytes | None) -> SchemaAndValue:
        """The payload of the envelope, as its schema says."""
        if data is None:
            return NULL
        schema, payload = self._envelopes.read(data)
        value = without_schema(payload) if schema is None else to_connect(schema, payload)
        return SchemaAndValue(schema, value)

    def from_connect_data(self, schema: Schema | None, value: ConnectValue) -> bytes | None:
        """The envelope of schema and payload; None for null without a schema."""
        if schema is None and value is None:
            return None
        written = b"null" if schema is None else self._written_schemas.get(schema)
        payload = _write_json(to_json(schema, value))
        return b'{"schema":' + written + b',"payload":' + payload + b"}"
