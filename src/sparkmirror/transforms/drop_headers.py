"""DropHeaders: takes headers away by their names."""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart


class DropHeaders:
    """Takes away every header with one of the names."""

    reads = frozenset({RecordPart.HEADERS})
    writes = frozenset({RecordPart.HEADERS})
    drops = False

    def __init__(self, headers: Iterable[str]) -> None:
        self.names = frozenset(headers)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record without these headers."""
        kept = tuple([header for header in record.headers if header.name not in self.names])
        return record if len(kept) == len(record.headers) else record._replace(headers=kept)
