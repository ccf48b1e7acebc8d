"""The receipt: what one task attempt copied of one partition. A plain value.

A receipt is the sum of acknowledged batches, so it never names a record that the target may lack.
Gaps between the records (compaction, markers) do not show: `records` counts what was copied, the
offsets are those of the first and the last copied record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from sparkmirror.model import TopicPartition

NO_TIMESTAMP = -1


class AttemptEpoch(NamedTuple):
    """A task attempt in one epoch, whose receipts are returned together or not at all."""

    epoch: int
    attempt: int
    """The number of the attempt; a driver never uses it twice."""


@dataclass(slots=True, kw_only=True)
class Receipt:
    """What was copied of one partition. First and last offsets are of copied records."""

    source: TopicPartition
    target: TopicPartition
    source_first: int
    target_first: int
    source_last: int = -1
    target_last: int = -1
    records: int = 0
    bytes: int = 0
    """The size of the batches on the wire, compressed if they are."""
    first_ms: int = NO_TIMESTAMP
    """Timestamp of the first record; -1 if it has none."""
    last_ms: int = NO_TIMESTAMP
    """Largest timestamp; -1 if no record has one."""

    def merged(self, later: Receipt) -> Receipt:
        """Return one receipt for both. `later` is of the same partition and follows this one."""
        assert later.source == self.source
        return replace(
            self,
            source_last=later.source_last,
            target_last=later.target_last,
            records=self.records + later.records,
            bytes=self.bytes + later.bytes,
            last_ms=max(self.last_ms, later.last_ms),
        )
