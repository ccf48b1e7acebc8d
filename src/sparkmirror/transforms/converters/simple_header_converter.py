"""Connect's SimpleHeaderConverter: headers are literals (numbers, dates, lists) or texts."""

from __future__ import annotations

from datetime import tzinfo

from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import NULL, Schema, SchemaAndValue
from sparkmirror.transforms.data.values_parser import parse_string
from sparkmirror.transforms.data.values_text import convert_to_string


class SimpleHeaderConverter:
    """Literals in a time zone."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def to_connect_data(self, data: bytes | None) -> SchemaAndValue:
        """The value of the literal."""
        return NULL if data is None else parse_string(data.decode("utf-8", "replace"), self._zone)

    def from_connect_data(self, schema: Schema | None, value: ConnectValue) -> bytes | None:
        """The literal of the value."""
        if value is None:
            return None
        return convert_to_string(value, self._zone).encode("utf-8", "replace")
