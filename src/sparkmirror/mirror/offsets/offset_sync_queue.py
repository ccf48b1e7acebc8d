"""When an offset sync is due, and in which order syncs leave.

A sync pins one copied record: "upstream 40 landed at downstream 70". Between syncs translation
assumes nothing but order, so a partition needs one at its first record, one whenever the two
offsets stop moving in step, and one every `offset.lag.max` records. What was copied since the
last due sync is *delayed* and sent at the next commit, so that a reader at the end of the log
lands at the end of the copy.

                    due                      fire, while fewer than MAX_IN_FLIGHT
    queue() ──┬──────────────▶ pending ────────────────────────────────▶ sent
              │                   ▲
              └──▶ delayed ───────┘ promote(), at each commit

Both maps hold one sync per partition, the latest; a partition keeps its place in the queue.
Pure state: sending, and saying when a send ended, is the caller's.
"""

from __future__ import annotations

from sparkmirror.mirror.offsets.records import OffsetSync
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

MAX_IN_FLIGHT = 10
_NO_OFFSET = -1


class OffsetSyncPartitionState:
    """Watches the offset pairs of one partition and says when a sync is due."""

    __slots__ = (
        "_last_sync_downstream",
        "_offset_lag_max",
        "_previous_downstream",
        "_previous_upstream",
        "_sync_due",
    )

    def __init__(self, offset_lag_max: int) -> None:
        self._offset_lag_max = offset_lag_max
        self._previous_upstream = _NO_OFFSET
        self._previous_downstream = _NO_OFFSET
        self._last_sync_downstream = _NO_OFFSET
        self._sync_due = False

    @property
    def last_sync_downstream(self) -> int:
        """The downstream offset of the sync that was due last; -1 before the first."""
        return self._last_sync_downstream

    def update(self, upstream: int, downstream: int) -> bool:
        """Take in one copied record. True means a sync is due, and stays so until `reset`."""
        last = self._last_sync_downstream
        first_of_this_life = last == _NO_OFFSET
        too_far_since_last = downstream - (last + 1) >= self._offset_lag_max
        upstream_skipped = upstream - self._previous_upstream != 1
        downstream_truncated = downstream < self._previous_downstream
        if first_of_this_life or too_far_since_last or upstream_skipped or downstream_truncated:
            self._last_sync_downstream = downstream
            self._sync_due = True
        self._previous_upstream = upstream
        self._previous_downstream = downstream
        return self._sync_due

    def reset(self) -> None:
        """The due sync was queued."""
        self._sync_due = False

    def advance(self, records: int) -> int | None:
        """Take in so many further records, both offsets in step, as `update` and `reset` would.

        Return how many records before the last of them the last due sync lies; None if none is.
        """
        every = self._offset_lag_max + 1
        next_due = self._last_sync_downstream + every
        self._previous_upstream += records
        self._previous_downstream += records
        if next_due > self._previous_downstream:
            return None
        behind = (self._previous_downstream - next_due) % every
        self._last_sync_downstream = self._previous_downstream - behind
        return behind


class OffsetSyncQueue:
    """The syncs of one task: which are due, which wait for a commit, which may be sent now."""

    def __init__(self, offset_lag_max: int, *, max_in_flight: int = MAX_IN_FLIGHT) -> None:
        self._offset_lag_max = offset_lag_max
        self._max_in_flight = max_in_flight
        self._in_flight = 0
        self._states: dict[TopicPartition, OffsetSyncPartitionState] = {}
        self._pending: dict[TopicPartition, OffsetSync] = {}
        self._delayed: dict[TopicPartition, OffsetSync] = {}

    @property
    def pending(self) -> tuple[OffsetSync, ...]:
        """What may be sent as soon as a place is free, in this order."""
        return tuple(self._pending.values())

    @property
    def delayed(self) -> tuple[OffsetSync, ...]:
        """What waits for the next commit."""
        return tuple(self._delayed.values())

    def queue_record(self, partition: TopicPartition, upstream: int, downstream: int) -> None:
        """Take in one copied record."""
        state = self._states.get(partition)
        if state is None:
            state = self._states[partition] = OffsetSyncPartitionState(self._offset_lag_max)
        sync = OffsetSync(partition=partition, upstream=upstream, downstream=downstream)
        if state.update(upstream, downstream):
            self._delayed.pop(partition, None)
            self._pending[partition] = sync
            state.reset()
        else:
            self._delayed[partition] = sync

    def queue_run(self, partition: TopicPartition, run: OffsetRun) -> None:
        """Take in a whole run of copied records at once, as if each had been queued.

        If several syncs fall due inside it, only the last is sent: a partition has one place.
        """
        self.queue_record(partition, run.source_first, run.target_first)
        if run.length == 1:
            return
        last = run.length - 1
        behind = self._states[partition].advance(last)
        if behind is not None:
            self._delayed.pop(partition, None)
            self._pending[partition] = _sync_at(run, last - behind, partition)
        if behind != 0:
            self._delayed[partition] = _sync_at(run, last, partition)

    def promote_delayed(self) -> None:
        """At a commit: what was delayed is due now, and replaces older pending syncs."""
        self._pending.update(self._delayed)
        self._delayed.clear()

    def pop_pending(self) -> list[OffsetSync]:
        """Hand out what may be sent now. Each one counts as in flight until `sent` is called."""
        free = max(0, self._max_in_flight - self._in_flight)
        ready = [self._pending[partition] for partition in list(self._pending)[:free]]
        for sync in ready:
            del self._pending[sync.partition]
        self._in_flight += len(ready)
        return ready

    def on_send_complete(self) -> None:
        """One send ended, well or not: a lost sync makes translation coarser, never wrong."""
        if self._in_flight == 0:
            raise ValueError("No offset sync is in flight")
        self._in_flight -= 1


def _sync_at(run: OffsetRun, index: int, partition: TopicPartition) -> OffsetSync:
    return OffsetSync(
        partition=partition,
        upstream=run.source_first + index,
        downstream=run.target_first + index,
    )
