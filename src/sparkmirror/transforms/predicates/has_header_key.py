"""HasHeaderKey: true for records with a header of a name."""

from __future__ import annotations

from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart


class HasHeaderKey:
    """True if at least one header has the name."""

    reads = frozenset({RecordPart.HEADERS})

    def __init__(self, name: str) -> None:
        self.name = name

    def test(self, record: ConnectRecord) -> bool:
        """Whether the record has such a header."""
        return any(header.name == self.name for header in record.headers)
