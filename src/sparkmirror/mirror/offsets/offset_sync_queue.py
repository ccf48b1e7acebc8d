"""When an offset sync is due, and in which order syncs are sent.

A sync describes one copied record: "upstream 40 is at downstream 70". Between syncs, translation
knows only the order of records. So a partition needs a sync at its first record, one whenever the
difference of the two offsets changes, and one every `offset.lag.max` records. A record after the
last due sync has a *delayed* sync, which is sent at the next commit, so that a reader at the end of
the source log is translated to the end of the copy.

                    due                      fire, while fewer than MAX_IN_FLIGHT
    queue_…() ──┬──────────────▶ pending ──────────────────────────────▶ sent
                │                   ▲
                └──▶ delayed ───────┘ promote_delayed(), at each commit

Both maps hold one sync per partition, the latest. A partition keeps its position in the queue.
This is state without I/O: the caller sends, and reports when a send is complete.
"""

from __future__ import annotations

from sparkmirror.mirror.offsets.records import OffsetSync
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition

MAX_IN_FLIGHT = 10
_NO_OFFSET = -1


class OffsetSyncPartitionState:
    """The offset pairs of one partition: says when a sync is due."""

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

    def update(self, upstream: int, downstream: int) -> bool:
        """Add one copied record. Return whether a sync is due; it stays due until `reset`."""
        last = self._last_sync_downstream
        is_first = last == _NO_OFFSET
        too_far_since_last = downstream - (last + 1) >= self._offset_lag_max
        upstream_skipped = upstream - self._previous_upstream != 1
        downstream_truncated = downstream < self._previous_downstream
        if is_first or too_far_since_last or upstream_skipped or downstream_truncated:
            self._last_sync_downstream = downstream
            self._sync_due = True
        self._previous_upstream = upstream
        self._previous_downstream = downstream
        return self._sync_due

    def reset(self) -> None:
        """Mark the due sync as queued."""
        self._sync_due = False

    def advance(self, records: int) -> int | None:
        """Add consecutive records, with the same result as `update` and `reset` for each.

        Return the distance from the last due sync to the last record; None if no sync was due.
        """
        interval = self._offset_lag_max + 1
        next_due = self._last_sync_downstream + interval
        self._previous_upstream += records
        self._previous_downstream += records
        if next_due > self._previous_downstream:
            return None
        behind = (self._previous_downstream - next_due) % interval
        self._last_sync_downstream = self._previous_downstream - behind
        return behind


class OffsetSyncQueue:
    """The syncs of one task: due, delayed until a commit, and in flight."""

    def __init__(self, offset_lag_max: int, *, max_in_flight: int = MAX_IN_FLIGHT) -> None:
        self._offset_lag_max = offset_lag_max
        self._max_in_flight = max_in_flight
        self._in_flight = 0
        self._states: dict[TopicPartition, OffsetSyncPartitionState] = {}
        self._pending: dict[TopicPartition, OffsetSync] = {}
        self._delayed: dict[TopicPartition, OffsetSync] = {}

    @property
    def pending(self) -> tuple[OffsetSync, ...]:
        """The due syncs, in the order of sending."""
        return tuple(self._pending.values())

    def queue_record(self, partition: TopicPartition, upstream: int, downstream: int) -> None:
        """Add one copied record."""
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
        """Add a run of copied records, with the same result as `queue_record` for each.

        If several syncs become due in the run, only the last is sent: the queue has one sync per
        partition.
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

    def discard(self, partition: TopicPartition) -> None:
        """Forget a partition and its syncs that were not sent."""
        for of_partition in (self._states, self._pending, self._delayed):
            of_partition.pop(partition, None)

    def promote_delayed(self) -> None:
        """Make delayed syncs due, in place of older pending ones. Called at each commit."""
        self._pending.update(self._delayed)
        self._delayed.clear()

    def pop_pending(self) -> list[OffsetSync]:
        """Remove and return the syncs to send now. Each is in flight until `on_send_complete`."""
        free = max(0, self._max_in_flight - self._in_flight)
        ready = [self._pending[partition] for partition in list(self._pending)[:free]]
        for sync in ready:
            del self._pending[sync.partition]
        self._in_flight += len(ready)
        return ready

    def on_send_complete(self) -> None:
        """Count a send as complete, also a failed one: a lost sync makes translation less exact."""
        if self._in_flight == 0:
            raise ValueError("No offset sync is in flight")
        self._in_flight -= 1


def _sync_at(run: OffsetRun, index: int, partition: TopicPartition) -> OffsetSync:
    return OffsetSync(
        partition=partition,
        upstream=run.source_first + index,
        downstream=run.target_first + index,
    )
