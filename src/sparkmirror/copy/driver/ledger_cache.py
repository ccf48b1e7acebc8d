"""The ledger in memory: the entries of all partitions, and when they are written.

An entry is open while a task may append, and closed when every sent batch is acknowledged. Closed
entries are written when a lease has ended cleanly; open ones after a takeover, before a lease is
granted and then at the flush interval, so that a takeover has little to read. A transactional
partition's entries are written by its task, in the same transaction as the records; only the first
one is written here.

If several conductors share the connector, a partition is granted only after a claim. The records of
one key have an order, so one claim wins:

    log     closed entry | open, conductor A | open, conductor B
                           A reads: no foreign record before its own one, the claim is won
                           B reads: A wrote first, the claim is lost

A closed entry that two conductors read is thus continued by one of them, and no fence is needed.
A claim holds while the last stored entry is the open one of this conductor: the next task attempt,
in the next epoch, gets the lease without another write. After a write that failed, the last stored
entry is not known, and the claim is written.
Every other takeover needs a fence, and the target broker then refuses the owner before it. Each
write of an entry names the conductor, so that a late write of a former owner is recognised.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.lease import NO_TASK, Lease
from sparkmirror.copy.ledger import Ledger, LedgerEntry, entry_for_lease
from sparkmirror.copy.offset_commits import OffsetCommitTimer
from sparkmirror.model import TopicPartition

WriteTaskEntries = Callable[[int, Mapping[TopicPartition, LedgerEntry]], None]
"""Writes the entries of one task's partitions in a transaction."""


class LedgerCache:
    """Reads and writes the ledger, and keeps its entries."""

    def __init__(
        self,
        ledger: Ledger,
        lock: threading.Lock,
        write: WriteTaskEntries | None = None,
        conductor: str = "",
    ) -> None:
        """`write` replaces `ledger.save`, for a ledger that only a transaction may write.

        `conductor` is the id of this conductor if it shares the connector with others.
        """
        self.conductor = conductor
        self.commit_timer = OffsetCommitTimer()
        self._ledger = ledger
        self._write_in_transaction = write
        self._lock = lock
        self.entries: dict[TopicPartition, LedgerEntry] = {}
        self._foreign: set[TopicPartition] = set()
        """Partitions whose entry was not written by this conductor since its last resume point."""
        self._uncertain: set[TopicPartition] = set()
        """Partitions whose last write failed: some entries of it may be stored all the same."""

    def load(self) -> None:
        """Read the ledger. Blocks."""
        self.entries = self._ledger.load()

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled. Any thread may call this."""
        self._ledger.cancel()

    def reload(self) -> None:
        """Read what was written since the last read. Blocks. Requires `load` first."""
        if self.conductor:
            self._apply_changes()
        else:
            self.load()

    def is_foreign(self, entry: LedgerEntry | None) -> bool:
        """Whether another conductor or another program wrote an entry."""
        return not (entry and entry.extension and entry.extension.conductor == self.conductor)

    def is_lost(self, tracked: TrackedPartition) -> bool:
        """Whether another conductor has written the entry since the last resume point."""
        return tracked.source in self._foreign

    def continue_from(self, partitions: Iterable[TrackedPartition]) -> None:
        """Take the present entries as those that the next claims continue."""
        self._foreign -= {tracked.source for tracked in partitions}

    def guarding_task(self, tracked: TrackedPartition) -> int:
        """Return the task whose transactional ids guard the entry in exactly-once mode.

        Only under the conductor id of that task may the entry be written.
        """
        task = self.transactional_task(tracked)
        return tracked.writing_task if task == NO_TASK else task

    def transactional_task(self, tracked: TrackedPartition) -> int:
        """Return the task that wrote the entry in a transaction; NO_TASK if none did."""
        entry = self.entries.get(tracked.source)
        extension = entry.extension if entry else None
        return extension.task if extension and extension.is_transactional else NO_TASK

    def claim(self, partitions: Collection[TrackedPartition]) -> set[TrackedPartition]:
        """Write open entries; return the partitions that this conductor may grant. Blocks.

        A conductor that shares its connector with no other gets all of them.
        """
        kept = {tracked for tracked in partitions if not self.is_lost(tracked)}
        held = {tracked: entry for tracked in kept if (entry := self._held_claim(tracked))}
        written = self.save(kept - held.keys(), is_open=True)
        won = self._won_claims(kept, written) if self.conductor else kept
        with self._lock:
            for tracked in held.keys() & won:
                assert tracked.lease is not None
                tracked.is_dirty = held[tracked] != self._entry(
                    tracked, tracked.lease, is_open=True
                )
        return won

    def _won_claims(
        self, kept: Collection[TrackedPartition], written: Collection[TopicPartition]
    ) -> set[TrackedPartition]:
        """Return the partitions that no other conductor has claimed before this one. Blocks."""
        changes = self._apply_changes()
        won: set[TrackedPartition] = set()
        for tracked in kept:
            entries = changes.get(tracked.source, [])
            if self._is_won(entries, tracked.source in written):
                won.add(tracked)
            elif foreign := [entry for entry in entries if entry and self.is_foreign(entry)]:
                self.entries[tracked.source] = foreign[-1]
        return won

    def _held_claim(self, tracked: TrackedPartition) -> LedgerEntry | None:
        """Return the open entry of this conductor on which the lease continues; None if none does.

        It must be known to be the last one stored. The lease may be ahead of it, as that of an
        owner is between two flushes.
        """
        entry, lease = self.entries.get(tracked.source), tracked.lease
        claimed = entry.extension if entry else None
        if entry is None or claimed is None or lease is None:
            return None
        is_own = claimed.is_open and not self.is_foreign(entry) and not self.is_lost(tracked)
        is_last = tracked.source not in self._uncertain and not tracked.is_repositioned
        is_ahead = entry.position <= lease.position and claimed.expected <= lease.expected
        is_same = (
            claimed.identity,
            claimed.source_topic_id,
            claimed.target_topic_id,
            claimed.chain,
            claimed.stored_remote,
        ) == (
            lease.identity,
            lease.source_topic_id,
            lease.target_topic_id,
            lease.chain,
            lease.stored_remote,
        )
        return entry if is_own and is_last and is_ahead and is_same else None

    def _is_won(self, entries: Sequence[LedgerEntry | None], has_written: bool) -> bool:
        """Whether no foreign record precedes the claim, the last record of this conductor.

        Without a claim no foreign record may be there at all. A claim that was written without a
        transaction must be among the entries: else the read has not reached it, and a foreign
        record may precede it.
        """
        foreign = [self.is_foreign(entry) for entry in entries]
        if has_written and self._write_in_transaction is None and False not in foreign:
            return False
        if has_written and False in foreign:
            last = len(foreign) - 1 - foreign[::-1].index(False)
            foreign = foreign[:last]
        return True not in foreign

    def _apply_changes(self) -> dict[TopicPartition, list[LedgerEntry | None]]:
        """Read the new records; return them by partition, in order."""
        changes: dict[TopicPartition, list[LedgerEntry | None]] = defaultdict(list)
        for partition, entry in self._ledger.changes():
            changes[partition].append(entry)
            if entry is None:
                self.entries.pop(partition, None)
            else:
                self.entries[partition] = entry
            if self.is_foreign(entry):
                self._foreign.add(partition)
        return changes

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def save(
        self, partitions: Iterable[TrackedPartition], *, is_open: bool
    ) -> frozenset[TopicPartition]:
        """Write the leases of partitions; blocks until they are stored. Returns what was written.

        After an error the partitions stay dirty.
        """
        with self._lock:
            leases = {tracked: tracked.lease for tracked in partitions if tracked.lease}
        entries = {
            tracked.source: entry
            for tracked, lease in leases.items()
            if not self._is_stored(tracked, entry := self._entry(tracked, lease, is_open=is_open))
        }
        if not entries:
            return frozenset()
        self._uncertain |= entries.keys()
        tasks = {tracked.source: self.guarding_task(tracked) for tracked in leases}
        with self.commit_timer.measure():
            self._write(entries, tasks)
        self._uncertain -= entries.keys()
        self.entries |= entries
        with self._lock:
            for tracked, lease in leases.items():
                tracked.is_dirty = tracked.lease is not lease
        return frozenset(entries)

    def _write(
        self,
        entries: Mapping[TopicPartition, LedgerEntry],
        tasks: Mapping[TopicPartition, int],
    ) -> None:
        if self._write_in_transaction is None:
            self._ledger.save(entries)
            return
        by_task: dict[int, dict[TopicPartition, LedgerEntry]] = defaultdict(dict)
        for partition, entry in entries.items():
            by_task[tasks[partition]][partition] = entry
        for task, group in by_task.items():
            self._write_in_transaction(task, group)

    def _entry(self, tracked: TrackedPartition, lease: Lease, *, is_open: bool) -> LedgerEntry:
        """The entry of a lease, with the id of this conductor if it shares the connector."""
        if self.conductor:
            lease = replace(lease, conductor=self.conductor, task=tracked.writing_task)
        return entry_for_lease(lease, is_open=is_open)

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
        self.entries[tracked.source] = self._entry(tracked, tracked.lease, is_open=is_open)
