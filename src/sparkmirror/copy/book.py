"""The book: what the ledger says of every partition, and what is written to it when.

An entry is open while a task may append, and closed when everything that was sent is known to have
arrived. Closed entries are written when a lease has ended cleanly; open ones before a lease begins
and then from time to time, so that a takeover has little to look through.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from sparkmirror.copy.ledger import Entry, Ledger, entry_of
from sparkmirror.copy.place import Place, State
from sparkmirror.model import TopicPartition


class Book:
    """The ledger's entries in memory, and the way to the ledger."""

    def __init__(self, ledger: Ledger, lock: threading.Lock) -> None:
        self._ledger = ledger
        self._lock = lock
        self.entries: dict[TopicPartition, Entry] = {}

    def load(self) -> None:
        """Read the ledger."""
        self.entries = self._ledger.load()

    def close(self) -> None:
        """Let go of the ledger."""
        self._ledger.close()

    def save(self, places: Iterable[Place], *, is_open: bool) -> None:
        """Write where places stand; returns when that is safe. After an error they stay dirty."""
        with self._lock:
            leases = {place: place.lease for place in places if place.lease}
        entries = {
            place.source: entry_of(lease, is_open=is_open) for place, lease in leases.items()
        }
        if not entries:
            return
        self._ledger.save(entries)
        self.entries |= entries
        with self._lock:
            for place, lease in leases.items():
                place.is_dirty = place.lease is not lease

    def flush(self, places: Iterable[Place]) -> None:
        """Write what has moved since it was written last."""
        dirty = [place for place in places if place.is_dirty and not place.is_unopened]
        self.save([place for place in dirty if place.state is State.LEASED], is_open=True)
        self.save([place for place in dirty if place.state is State.WAITING], is_open=False)

    def note(self, place: Place) -> None:
        """Take what we know ourselves for what the ledger says, and let the place be opened anew.

        A place that is not waiting may still be appended to by whoever had it.
        """
        assert place.lease is not None
        is_open = place.state is not State.WAITING
        self.entries[place.source] = entry_of(place.lease, is_open=is_open)
        place.is_unopened = True
