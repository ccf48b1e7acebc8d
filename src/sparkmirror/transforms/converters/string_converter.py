"""Connect's StringConverter: UTF-8 text. It writes the `toString` of anything."""

from __future__ import annotations

from datetime import tzinfo

from sparkmirror.transforms.data.java_text import to_java_string
from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import OPTIONAL_STRING, Schema, SchemaAndValue


class StringConverter:
    """Text with an optional schema. Bytes that are no UTF-8 become U+FFFD."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def to_connect_data(self, data: bytes | None) -> SchemaAndValue:
        """The text that the bytes hold."""
        text = None if data is None else data.decode("utf-8", "replace")
        return SchemaAndValue(OPTIONAL_STRING, text)

    def from_connect_data(self, schema: Schema | None, value: ConnectValue) -> bytes | None:
        """The text of the value, whatever it is."""
        if value is None:
            return None
        return to_java_string(value, self._zone).encode("utf-8", "replace")
