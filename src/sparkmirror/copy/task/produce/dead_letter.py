"""One dead letter: a record that failed in a transformation, as it is written to its own topic."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.wire.batch.records import Record

_OVERHEAD_BYTES = 32
"""What a record needs besides keys, values and headers, roughly."""


@dataclass(frozen=True, slots=True, eq=False)
class DeadLetter:
    """A record of the source for the topic of dead letters. The offset is that of the source."""

    record: Record

    @property
    def source_offset(self) -> int:
        """The source offset of the record that failed."""
        return self.record.offset

    @property
    def size(self) -> int:
        """About as many bytes as the record needs in a batch."""
        _, _, key, value, headers = self.record
        size = _OVERHEAD_BYTES + len(key or b"") + len(value or b"")
        return size + sum(len(name) + len(content or b"") for name, content in headers)
