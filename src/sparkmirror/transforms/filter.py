"""Filter: drops records. Its predicate says which."""

from __future__ import annotations

from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import NO_PARTS


class Filter:
    """Drops every record that it is applied to."""

    reads = NO_PARTS
    writes = NO_PARTS
    drops = True

    def apply(self, record: ConnectRecord) -> None:
        """Drop the record."""
