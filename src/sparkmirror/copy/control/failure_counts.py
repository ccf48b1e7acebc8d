"""What a task did about records that failed in a transformation and are tolerated."""

from __future__ import annotations

from typing import NamedTuple


class FailureCounts(NamedTuple):
    """Counts of one partition: since the last report, or since the driver started."""

    errors_logged: int = 0
    """Log lines that name a record (`errors.log.enable`)."""
    dead_letters: int = 0
    """Dead letters that the target has acknowledged."""
    dead_letter_requests: int = 0
    """Letters that were to be written, those of each further attempt included."""
    dead_letter_failures: int = 0
    """Those that were not written."""

    def plus(self, other: FailureCounts) -> FailureCounts:
        """Return the sum."""
        return FailureCounts(*(one + more for one, more in zip(self, other, strict=True)))

    def increase_since(self, before: FailureCounts) -> FailureCounts:
        """Return how much counts have grown. A lower count is that of another driver."""
        pairs = zip(self, before, strict=True)
        return FailureCounts(*(now - then if now >= then else now for now, then in pairs))
