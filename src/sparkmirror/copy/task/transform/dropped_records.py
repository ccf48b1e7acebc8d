"""The source offsets of records that a chain or a query did not keep, until they are counted.

A conversion collects them as it meets them. Those behind a record that is too large are read again,
and count only then. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class DroppedRecords:
    """The dropped records of one partition."""

    _filtered: list[int] = field(default_factory=list)
    _skipped: list[int] = field(default_factory=list)
    _counts: tuple[int, int] = (0, 0)

    def add(self, filtered: Sequence[int], skipped: Sequence[int]) -> None:
        """Record the source offsets of records of a batch that are not copied."""
        self._filtered += filtered
        self._skipped += skipped

    def count_before(self, position: int) -> None:
        """Count what was dropped before the position, and forget the rest."""
        filtered, skipped = self._counts
        self._counts = (
            filtered + bisect_left(self._filtered, position),
            skipped + bisect_left(self._skipped, position),
        )
        self._filtered, self._skipped = [], []

    def pop_counts(self) -> tuple[int, int]:
        """Return how many filtered and skipped records were counted since the last call."""
        counts, self._counts = self._counts, (0, 0)
        return counts
