"""What a converter does. Converters of keys, values and headers are the same here.

Connect's have the topic and the name of the header as arguments; none of these converters uses
them.
"""

from __future__ import annotations

from typing import Protocol

from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import Schema, SchemaAndValue


class Converter(Protocol):
    """Reads bytes as Connect's data and writes them. Raises DataException if it cannot."""

    def to_connect_data(self, data: bytes | None) -> SchemaAndValue:
        """The data that the bytes hold."""

    def from_connect_data(self, schema: Schema | None, value: ConnectValue) -> bytes | None:
        """The bytes that hold the data."""
