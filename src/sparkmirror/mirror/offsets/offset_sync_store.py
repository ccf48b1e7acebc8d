"""Translates upstream offsets with offset syncs, as MirrorMaker 2 does.

Each source partition has exactly 64 slots for syncs, the newest first. The distance doubles from
slot to slot: translation is precise where consumers usually are and coarse for old offsets, and
memory is bounded.

    slot    0 ... 7     8     9    10    11 ... 63        after syncs at 0, 100, 200 ... 1000
    sync     1000      900   800   400       0
            newest                         earliest

Invariants on the slots s of a partition. "is" means the same sync, because one sync may fill many
slots.

    A  s[0] is the newest sync received.
    B  recency:     for i < j   s[i] is s[j]  or  s[i].up <= s[j].up + 2^j - 2^i
    C  separation:  for i < j   s[i] is s[j]  or  s[i].up >= s[j].up + 2^max(i-2, 0)
    D  s[63] is the earliest sync that can be used.

B limits how far a consumer is sent back. C keeps syncs apart, so that 64 slots cover all offsets.
Java computes the sums in 64 bits and treats an overflow as B kept and C broken. A sum that
overflows exceeds every offset, so Python's unbounded sums give the same results.

A sync that repeats the newest upstream offset (its record was copied again) replaces slot 0 only,
so C applies to syncs with different upstream offsets. A sync with a lower upstream offset replaces
all slots: the topic was recreated or the source rewound, and older syncs are not valid any more.

Translation is conservative. With the sync (40 -> 70), a consumer at 40 goes to 70. A consumer at
41 to 50 goes to 71, because those records are known to be after 70 and nothing more. It may read
records twice but skips none. A position before the earliest sync is not translated.

This is state without I/O: the caller reads the topic and reports when it has reached the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from sparkmirror.mirror.offsets.records import OffsetSync
from sparkmirror.model import TopicPartition

SLOTS = 64
TOO_OLD = -1


def invariant_b(newer: OffsetSync, older: OffsetSync, i: int, j: int) -> bool:
    """Recency, for `newer` in slot i and `older` in slot j > i."""
    return newer is older or newer.upstream <= older.upstream + (1 << j) - (1 << i)


def invariant_c(newer: OffsetSync, older: OffsetSync, i: int) -> bool:
    """Separation, for `newer` in slot i and `older` in any later slot."""
    return newer is older or newer.upstream >= older.upstream + (1 << i - 2 if i > 2 else 1)


def broken_invariants(slots: Sequence[OffsetSync]) -> list[str]:
    """Return the pairs of adjacent slots that break B or C. Adjacent pairs imply the others."""
    broken = []
    for i in range(len(slots) - 1):
        if not invariant_b(slots[i], slots[i + 1], i, i + 1):
            broken.append(f"B({i},{i + 1})")
        repeated = slots[i].upstream == slots[i + 1].upstream
        if not repeated and not invariant_c(slots[i], slots[i + 1], i):
            broken.append(f"C({i},{i + 1})")
    return broken


def _upstream_descending(sync: OffsetSync) -> int:
    return -sync.upstream


class OffsetSyncStore:
    """The syncs of all partitions of one source cluster.

    `must_read_to_end` is for a task that does not know its earlier checkpoints. Until it reaches
    the end of the topic, it keeps only the last sync of each partition, so that translation does
    not go back behind the checkpoints of an earlier run.
    """

    def __init__(self, *, must_read_to_end: bool = False) -> None:
        self._must_read_to_end = must_read_to_end
        self._read_to_end = False
        self._slots: dict[TopicPartition, tuple[OffsetSync, ...]] = {}

    @property
    def is_ready(self) -> bool:
        """Whether the end of the topic was reached. No position is translated before."""
        return self._read_to_end

    def mark_read_to_end(self) -> None:
        """Report that all syncs that were in the topic at the start were added."""
        self._read_to_end = True

    def slots(self, partition: TopicPartition) -> tuple[OffsetSync, ...] | None:
        """Return the 64 slots of a partition, newest first."""
        return self._slots.get(partition)

    def add(self, sync: OffsetSync) -> None:
        """Add one sync, in the order of the topic."""
        slots = self._slots.get(sync.partition)
        replaces_all = (
            slots is None
            or (self._must_read_to_end and not self._read_to_end)
            or sync.upstream < slots[0].upstream
        )
        if slots is None or replaces_all:
            self._slots[sync.partition] = (sync,) * SLOTS
        else:
            self._slots[sync.partition] = _insert_sync(slots, sync)

    def translate_downstream(self, partition: TopicPartition, upstream: int) -> int | None:
        """Return the downstream position for the position `upstream`.

        None: the partition has no sync yet. TOO_OLD (-1): before the earliest sync.
        """
        slots = self._slots.get(partition)
        if slots is None or not self._read_to_end:
            return None
        index = bisect_left(slots, -upstream, key=_upstream_descending)
        if index == SLOTS:
            return TOO_OLD
        sync = slots[index]
        return sync.downstream if sync.upstream == upstream else sync.downstream + 1


def _insert_sync(before: tuple[OffsetSync, ...], newest: OffsetSync) -> tuple[OffsetSync, ...]:
    """Return the slots `before` with `newest` inserted at slot 0.

    Slot by slot the old syncs move back, up to the first slot that may stay as it is. The slots
    after it stay too. Most insertions change a few slots.
    """
    slots = list(before)
    slots[0] = newest
    replacement = newest
    candidate = 0
    for slot in range(1, SLOTS):
        if invariant_b(slots[slot - 1], slots[slot], slot - 1, slot):
            break
        replacement, candidate = _next_replacement(slots, before, slot, replacement, candidate)
        slots[slot] = replacement
    if __debug__ and (broken := broken_invariants(slots[: slot + 1])):
        raise AssertionError(f"{newest} broke {broken}")
    return tuple(slots)


def _next_replacement(
    slots: list[OffsetSync],
    before: tuple[OffsetSync, ...],
    slot: int,
    replacement: OffsetSync,
    candidate: int,
) -> tuple[OffsetSync, int]:
    """Return the sync for `slot`: the next old sync that fits, or that of the slot before.

    A candidate that is too close to the slot before, or that the next slot repeats, is skipped.
    """
    neighbour = slots[slot - 1]
    while True:
        sync = before[candidate]
        separated = invariant_c(neighbour, sync, slot - 1)
        fits = (
            separated
            and invariant_b(neighbour, sync, slot - 1, slot)
            and (slot + 1 == SLOTS or invariant_c(sync, slots[slot + 1], slot))
        )
        repeated = candidate + 1 < SLOTS and sync is before[candidate + 1]
        is_skipped = repeated or not separated
        if fits:
            replacement = sync
        if fits or is_skipped:
            candidate += 1
        if not (candidate < slot and is_skipped):
            return replacement, candidate
