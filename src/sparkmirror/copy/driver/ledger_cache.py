"""The ledger in memory: the entries of all partitions, and when they are written.

An entry is open while a task may append, and closed when every sent batch is acknowledged. Closed
entries are written when a lease has ended cleanly; open ones before a lease is granted and then at
the flush interval, so that a takeover has little to read. A transactional partition's entries are
written by its task, in the same transaction as the records; only the first one is written here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.ledger import Ledger, LedgerEntry, entry_for_lease
from sparkmirror.model import TopicPartition

WriteEntries = Callable[[Mapping[TopicPartition, LedgerEntry]], None]


class LedgerCache:
    """Reads and writes the ledger, and keeps its entries."""

    def __init__(
        self, ledger: Ledger, lock: threading.Lock, write: WriteEntries | None = None
    ) -> None:
        """`write` replaces `ledger.save`, for a ledger that only a transaction may write."""
        self._ledger = ledger
        self._write = write or ledger.save
        self._lock = lock
        self.entries: dict[TopicPartition, LedgerEntry] = {}

    def load(self) -> None:
        """Read the ledger. Blocks."""
        self.entries = self._ledger.load()

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled. Any thread may call this."""
        self._ledger.cancel()

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def save(self, partitions: Iterable[TrackedPartition], *, is_open: bool) -> None:
        """Write the leases of partitions; blocks until they are stored.

        After an error the partitions stay dirty.
        """
        with self._lock:
            leases = {tracked: tracked.lease for tracked in partitions if tracked.lease}
        entries = {
            tracked.source: entry
            for tracked, lease in leases.items()
            if not self._is_stored(tracked, entry := entry_for_lease(lease, is_open=is_open))
        }
        if not entries:
            return
        self._write(entries)
        self.entries |= entries
        with self._lock:
            for tracked, lease in leases.items():
                tracked.is_dirty = tracked.lease is not lease

    def flush(self, partitions: Iterable[TrackedPartition]) -> None:
        """Write the entries of partitions that changed since the last write."""
        dirty = [
            tracked
            for tracked in partitions
            if tracked.is_dirty and not tracked.is_transactional and not tracked.needs_resume_point
        ]
        self.save([p for p in dirty if p.state is LeaseState.LEASED], is_open=True)
        self.save([p for p in dirty if p.state is LeaseState.WAITING], is_open=False)

    @property
    def has_transactional_entries(self) -> bool:
        """Whether an entry was written in a transaction."""
        return any(
            entry.extension and entry.extension.is_transactional for entry in self.entries.values()
        )

    def committed_target_ends(
        self, partitions: Iterable[TrackedPartition]
    ) -> dict[TopicPartition, int]:
        """Return up to which offset remote partitions hold committed records; -1 without entry.

        Leaves out partitions whose entry Java or an operator wrote: it has no target offset.
        """
        ends: dict[TopicPartition, int] = {}
        for tracked in partitions:
            entry = self.entries.get(tracked.source)
            if entry is None:
                ends[tracked.target] = -1
            elif entry.extension:
                ends[tracked.target] = entry.extension.expected
        return ends

    def _is_stored(self, tracked: TrackedPartition, entry: LedgerEntry) -> bool:
        """Whether the task has written this entry in its own transaction."""
        return tracked.is_transactional and self.entries.get(tracked.source) == entry

    def record_and_reopen(self, tracked: TrackedPartition) -> None:
        """Set the entry from the lease in memory, and require a new resume point."""
        self.record(tracked)
        tracked.needs_resume_point = True

    def record(self, tracked: TrackedPartition) -> None:
        """Set the entry from the lease in memory; nothing is written.

        The entry of a partition that is not waiting is open: its last owner may still append.
        """
        assert tracked.lease is not None
        is_open = tracked.state is not LeaseState.WAITING
        self.entries[tracked.source] = entry_for_lease(tracked.lease, is_open=is_open)
