"""Translates upstream offsets with the offset syncs read so far: MirrorMaker 2's own way.

For each source partition exactly 64 slots hold syncs, the newest first, the spacing doubling
from slot to slot: precise where consumers usually are, coarse far behind, bounded in memory.

    slot    0 ... 7     8     9    10    11 ... 63        after syncs at 0, 100, 200 ... 1000
    sync     1000      900   800   400       0
            newest                         earliest

Invariants on the slots s of a partition. `2^i` is what one place costs in precision; "is" means
the very same sync, since one sync may fill many slots.

    A  s[0] is the newest sync received.
    B  recency:     for i < j   s[i] is s[j]  or  s[i].up <= s[j].up + 2^j - 2^i
    C  separation:  for i < j   s[i] is s[j]  or  s[i].up >= s[j].up + 2^max(i-2, 0)
    D  s[63] is the earliest sync that can be used.

B keeps old syncs from being so old that a consumer would be sent back far; C keeps them apart, so
that 64 slots reach over the whole range of offsets. Java computes the sums in 64 bits and counts
an overflow as B kept and C broken. A sum that overflows exceeds every offset, so comparing with
Python's unbounded sums gives the same answers.

A sync that repeats the newest upstream offset (its record was copied again) replaces slot 0 alone,
so C speaks of syncs with different upstream offsets. A sync with a lower upstream offset starts
over: the topic was recreated or the source rewound, and older pairs no longer mean anything.

Translation is conservative. With the sync (40 -> 70), a consumer at 40 goes to 70; one at 41 to
50 goes to 71, since all that is known is that those records lie after 70. It may read some twice
but skips none. A consumer before the earliest sync is not translated at all.

Pure state: reading the topic is the caller's, including saying when its end was first reached.
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
    """Name every pair of neighbouring slots that breaks B or C. Neighbours imply the rest."""
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

    `must_read_to_end` is for a reader that does not know which checkpoints it emitted before:
    until the end of the topic was reached it keeps only the last sync of each partition, so that
    translation cannot go back behind what an earlier life has said.
    """

    def __init__(self, *, must_read_to_end: bool = False) -> None:
        self._must_read_to_end = must_read_to_end
        self._read_to_end = False
        self._slots: dict[TopicPartition, tuple[OffsetSync, ...]] = {}

    @property
    def is_ready(self) -> bool:
        """Whether the end of the topic was reached; nothing is translated before."""
        return self._read_to_end

    def mark_read_to_end(self) -> None:
        """Everything that stood in the topic when reading began has been added."""
        self._read_to_end = True

    def slots(self, partition: TopicPartition) -> tuple[OffsetSync, ...] | None:
        """Return the 64 slots of a partition, newest first."""
        return self._slots.get(partition)

    def add(self, sync: OffsetSync) -> None:
        """Take in one sync, in the order of the topic."""
        slots = self._slots.get(sync.partition)
        starts_over = (
            slots is None
            or (self._must_read_to_end and not self._read_to_end)
            or sync.upstream < slots[0].upstream
        )
        if slots is None or starts_over:
            self._slots[sync.partition] = (sync,) * SLOTS
        else:
            self._slots[sync.partition] = _insert_sync(slots, sync)

    def translate_downstream(self, partition: TopicPartition, upstream: int) -> int | None:
        """Return where a consumer at `upstream` goes on downstream.

        None: nothing is known of the partition yet. TOO_OLD (-1): before the earliest sync.
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
    """Return the slots after `newest` was put in front of those `before`.

    Slot by slot the old syncs move back until a slot is met that may stay as it is; everything
    behind it may stay, too. Most insertions end after a few slots.
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
    """Find what goes into `slot`: the next old sync that fits, or the one used for the slot before.

    A candidate that stands too close to the slot before, or that the next slot repeats, is passed
    over: there is nothing to gain from it.
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
        pass_over = repeated or not separated
        if fits:
            replacement = sync
        if fits or pass_over:
            candidate += 1
        if not (candidate < slot and pass_over):
            return replacement, candidate
