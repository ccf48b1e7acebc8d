"""InsertHeader: adds a header with the same value to every record."""

from __future__ import annotations

from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.data.values_parser import parse_string
from sparkmirror.transforms.record import ConnectHeader, ConnectRecord
from sparkmirror.transforms.transformation import NO_PARTS, RecordPart


class InsertHeader:
    """Appends a header. The literal is a number, a date, a list or a map if it looks like one."""

    reads = NO_PARTS
    writes = frozenset({RecordPart.HEADERS})
    drops = False

    def __init__(self, header: str, value_literal: str, environment: JavaEnvironment) -> None:
        schema, value = parse_string(value_literal, environment.zone)
        self.header = ConnectHeader(header, schema, value)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with the header behind its own."""
        return record._replace(headers=(*record.headers, self.header))
