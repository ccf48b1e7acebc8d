"""The book: what the ledger says of every partition, and what is written to it when.

An entry is open while a task may append, and closed when everything that was sent is known to have
arrived. Closed entries are written when a lease has ended cleanly; open ones before a lease begins
and then from time to time, so that a takeover has little to look through. What goes in transactions
has its entry written by the task, in the same transaction; only the first one is written here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.ledger import Ledger, LedgerEntry, entry_for_lease
from sparkmirror.model import TopicPartition

WriteEntries = Callable[[Mapping[TopicPartition, LedgerEntry]], None]


class LedgerCache:
    """The ledger's entries in memory, and the way to the ledger."""

    def __init__(
        self, ledger: Ledger, lock: threading.Lock, write: WriteEntries | None = None
    ) -> None:
        """Write through `write`, if the ledger may not be written to by just anybody."""
        self._ledger = ledger
        self._write = write or ledger.save
        self._lock = lock
        self.entries: dict[TopicPartition, LedgerEntry] = {}

    def load(self) -> None:
        """Read the ledger."""
        self.entries = self._ledger.load()

    def close(self) -> None:
        """Let go of the ledger."""
        self._ledger.close()

    def save(self, places: Iterable[TrackedPartition], *, is_open: bool) -> None:
        """Write where places stand; returns when that is safe. After an error they stay dirty."""
        with self._lock:
            leases = {place: place.lease for place in places if place.lease}
        entries = {
            place.source: entry
            for place, lease in leases.items()
            if not self._is_stored(place, entry := entry_for_lease(lease, is_open=is_open))
        }
        if not entries:
            return
        self._write(entries)
        self.entries |= entries
        with self._lock:
            for place, lease in leases.items():
                place.is_dirty = place.lease is not lease

    def flush(self, places: Iterable[TrackedPartition]) -> None:
        """Write what has moved since it was written last."""
        dirty = [place for place in places if place.is_dirty and not place.is_transactional]
        dirty = [place for place in dirty if not place.needs_resume_point]
        self.save([place for place in dirty if place.state is LeaseState.LEASED], is_open=True)
        self.save([place for place in dirty if place.state is LeaseState.WAITING], is_open=False)

    @property
    def has_transactional_entries(self) -> bool:
        """Whether anything in it was written in a transaction."""
        return any(
            entry.extension and entry.extension.is_transactional for entry in self.entries.values()
        )

    def committed_target_ends(
        self, places: Iterable[TrackedPartition]
    ) -> dict[TopicPartition, int]:
        """Up to where remote partitions hold what the ledger speaks of; -1 if it knows of nothing.

        Where somebody else wrote last nobody can tell.
        """
        ends: dict[TopicPartition, int] = {}
        for place in places:
            entry = self.entries.get(place.source)
            if entry is None:
                ends[place.target] = -1
            elif entry.extension:
                ends[place.target] = entry.extension.expected
        return ends

    def _is_stored(self, place: TrackedPartition, entry: LedgerEntry) -> bool:
        """Whether the task has written this itself, with what it committed."""
        return place.is_transactional and self.entries.get(place.source) == entry

    def record_and_reopen(self, place: TrackedPartition) -> None:
        """Take what we know ourselves for what the ledger says, and let the place be opened anew.

        A place that is not waiting may still be appended to by whoever had it.
        """
        self.record(place)
        place.needs_resume_point = True

    def record(self, place: TrackedPartition) -> None:
        """Take what we know ourselves for what the ledger says."""
        assert place.lease is not None
        is_open = place.state is not LeaseState.WAITING
        self.entries[place.source] = entry_for_lease(place.lease, is_open=is_open)
