"""RecordIsTombstone: true for records whose value is null."""

from __future__ import annotations

from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart


class RecordIsTombstone:
    """True if the value is null. The JSON text null is a null value, too."""

    reads = frozenset({RecordPart.VALUE})

    def test(self, record: ConnectRecord) -> bool:
        """Whether the value is null."""
        return record.value is None
