"""The envelope of schema and payload in which JsonConverter writes data with schemas.

Records of a topic have few schemas, so the text up to the payload is the same in most of them: it
is read once, and later recognized. A document that begins otherwise is read as a whole.
"""

from __future__ import annotations

import json
import marshal
import re
from typing import Any, Final

from sparkmirror.transforms.converters.json_reader import (
    BLANKS,
    decode_text,
    read_exact_json,
    read_exact_value,
)
from sparkmirror.transforms.converters.json_schema import as_connect_schema
from sparkmirror.transforms.converters.json_to_connect import to_connect
from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.data.schema import Schema

_MEMBERS: Final = {"schema", "payload"}
_OPENING: Final = re.compile(r'[ \t\r\n]*\{[ \t\r\n]*"schema"[ \t\r\n]*:[ \t\r\n]*')
_BEFORE_PAYLOAD: Final = re.compile(r'[ \t\r\n]*,[ \t\r\n]*"payload"[ \t\r\n]*:[ \t\r\n]*')
_MAX_PREFIXES: Final = 8
_MAX_SCHEMAS: Final = 1000
_WITHOUT_REFERENCES: Final = 2
"""The version of marshal's format that depends on the values only, not on their identity."""


class EnvelopeReader:
    """Reads envelopes. Equal schemas are the same object, so that caches know them."""

    def __init__(self) -> None:
        self._schemas: dict[bytes, Schema | None] = {}
        self._prefixes: dict[str, Schema | None] = {}

    def read(self, data: bytes) -> tuple[Schema | None, Any]:
        """The schema and the payload, numbers with all digits. Raises DataException."""
        text = decode_text(data)
        for prefix, schema in self._prefixes.items():
            if text.startswith(prefix):
                found = read_exact_value(text, len(prefix))
                if found is not None and text.startswith("}", _skip_blanks(text, found[1])):
                    return schema, found[0]
        envelope = read_exact_json(data)
        if not isinstance(envelope, dict) or envelope.keys() != _MEMBERS:
            raise data_exception(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may '
                "not contain additional fields. If you are trying to deserialize plain JSON data, "
                "set schemas.enable=false in your converter configuration."
            )
        schema = self._schema(envelope["schema"])
        self._remember_prefix(text, schema)
        return schema, envelope["payload"]

    def _schema(self, node: Any) -> Schema | None:
        key = _schema_key(node)
        if key not in self._schemas:
            if len(self._schemas) >= _MAX_SCHEMAS:
                self._schemas.clear()
            self._schemas[key] = as_connect_schema(node, to_connect)
        return self._schemas[key]

    def _remember_prefix(self, text: str, schema: Schema | None) -> None:
        opening = _OPENING.match(text)
        found = read_exact_value(text, opening.end()) if opening else None
        before_payload = _BEFORE_PAYLOAD.match(text, found[1]) if found else None
        if before_payload is None:
            return
        if len(self._prefixes) >= _MAX_PREFIXES:
            self._prefixes.clear()
        self._prefixes[text[: before_payload.end()]] = schema


def _skip_blanks(text: str, position: int) -> int:
    while text[position : position + 1] in BLANKS and position < len(text):
        position += 1
    return position


def _schema_key(node: Any) -> bytes:
    """Bytes that are the same for equal nodes, quickly made. Only defaults can be decimals."""
    try:
        return marshal.dumps(node, _WITHOUT_REFERENCES)
    except ValueError:
        return json.dumps(node, default=repr).encode()
