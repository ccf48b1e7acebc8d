"""The queues of a leased partition whose records go to several topics.

Each conversion of fetched records makes a *group*: all records of some source offsets, with one
queue for each topic that they go to. The records of a topic keep the order of the source. Which
topic is appended to first does not matter. A group is complete when the target has acknowledged all
of it.

    source log     100 101 102 103 104 105      one group: 100 to 105
    A.orders       100 101     103              `RoutingQueue`: the remote topic, and the position
    late                   102     104 105      `RoutedQueue`: one for each other topic

    position       100 until all are acknowledged, then 106

Only in transactions: an unclean end aborts what was appended of a group, in every topic.

Invariants:
    A  one group at a time: nothing is queued before the last group is complete or dropped
    B  the position never lies within a group, so a commit stores the begin or the end of one
    C  a group of which the target may have a batch (`is_group_begun`) is sent to its end in the
       same transaction, or the transaction fails; any other group may be left to the next one
    D  a transaction gives a remote partition to one queue at a time (`transaction_state`): several
       partitions of a task may send to the same one

No I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sparkmirror.copy.lease import Lease
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.produce.transaction_state import Transaction
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition


class RoutingQueue(PartitionQueue):
    """The batches for the remote topic, the queues of the other topics, and the position."""

    __slots__ = (
        "_group_first",
        "_is_group_begun",
        "_is_partly_acknowledged",
        "_unacknowledged",
        "routes",
    )

    def __init__(self, lease: Lease, transaction: Transaction) -> None:
        super().__init__(lease, transaction)
        self.routes: dict[str, RoutedQueue] = {}
        self._group_first = self.position
        self._unacknowledged = 0
        """How many batches of the group are not acknowledged."""
        self._is_group_begun = self._is_partly_acknowledged = False

    def queue_for(self, topic: str) -> PartitionQueue:
        """Return the queue of the batches for a topic."""
        if topic == self.lease.target.topic:
            return self
        if topic not in self.routes:
            self.routes[topic] = RoutedQueue(self, topic)
        return self.routes[topic]

    # -- the group -------------------------------------------------------------------------------

    @property
    def has_group(self) -> bool:
        """Whether batches of a group are not acknowledged."""
        return self._unacknowledged > 0

    @property
    def is_group_begun(self) -> bool:
        """Whether a batch of the group that is not complete has a sequence, or had one."""
        return self._is_group_begun

    def on_enqueued(self) -> None:
        """Count a batch of the group, for any topic."""
        self._unacknowledged += 1

    def on_sent(self) -> None:
        """Record that a batch of the group is sent, to any topic."""
        self._is_group_begun = True

    def on_acknowledged(self) -> None:
        """Move the position to the end of the group if all of it is acknowledged."""
        self._unacknowledged -= 1
        self._is_group_begun = self._is_partly_acknowledged = self.has_group
        self.position = self._group_first
        if not self.has_group:
            self._group_first = self.position = self.next_fetch_offset

    def _queues(self) -> Iterator[PartitionQueue]:
        yield self
        yield from self.routes.values()

    # -- what also concerns the other topics -----------------------------------------------------

    def skip_to(self, next_source_offset: int) -> None:
        """End the group here: the offsets up to this one have no other records to copy."""
        assert next_source_offset >= self.next_fetch_offset
        self.next_fetch_offset = next_source_offset
        if not self.has_group:
            self._group_first = self.position = next_source_offset

    def enqueue(self, batch: PendingBatch) -> None:
        """Queue the next batch for the remote topic."""
        super().enqueue(batch)
        self.on_enqueued()

    def next_to_send(self) -> PendingBatch | None:
        """Move the next batch to in_flight and return it; None if no batch may be sent now."""
        batch = super().next_to_send()
        if batch:
            self.on_sent()
        return batch

    def acknowledge(self, batch: PendingBatch) -> list[OffsetRun]:
        """Remove the oldest batch in flight to the remote topic; return its offsets."""
        runs = super().acknowledge(batch)
        self.on_acknowledged()
        return runs

    @property
    def may_fetch_more(self) -> bool:
        """Whether the last group is complete."""
        return not self.has_group

    @property
    def has_open_requests(self) -> bool:
        """Whether a request with a batch of the group is unanswered."""
        return any(queue.open_requests for queue in self._queues())

    @property
    def active_records(self) -> int:
        """The records of the group that are not acknowledged."""
        return sum(queue.next_expected - queue.expected for queue in self._queues())

    @property
    def is_unambiguous(self) -> bool:
        """Whether the target certainly has nothing of the group."""
        return not self._is_partly_acknowledged and super().is_unambiguous

    @property
    def has_sequenced_batches(self) -> bool:
        """Whether the transaction must not end before the group does."""
        return self.is_group_begun

    def unacknowledged(self) -> tuple[PendingBatch, ...]:
        """Every batch of the group that is not acknowledged."""
        return tuple(
            batch for queue in self._queues() for batch in (*queue.in_flight, *queue.ready)
        )

    def drop_unsent(self) -> None:
        """Drop the group if the target certainly has nothing of it. The next owner fetches it."""
        if self.is_unambiguous and not self.has_open_requests:
            self.reset_unappended()
            self._drop_group()

    def reset_unappended(self) -> None:
        """Leave a group of which the target has nothing to the next transaction."""
        assert not self._is_partly_acknowledged
        for queue in self._queues():
            if queue.has_own_sequenced_batches:
                queue.reset_own_unappended()
        self._is_group_begun = False

    def abandon(self) -> Lease:
        """Drop everything that is not acknowledged; return the committed lease."""
        self._drop_group()
        return self.durable_lease

    def _drop_group(self) -> None:
        for batch in self.unacknowledged():
            batch.release()
        for queue in self._queues():
            queue.in_flight.clear()
            queue.ready.clear()
            queue.queued_bytes, queue.next_expected = 0, queue.expected
            queue.next_fetch_offset = self.position
        self._unacknowledged = 0
        self._is_group_begun = self._is_partly_acknowledged = False

    def check_invariants(self) -> None:
        """Assert invariant B, and that the batches of the group are counted."""
        assert self.position == self._group_first
        assert self._unacknowledged == len(self.unacknowledged())


class RoutedQueue(PartitionQueue):
    """The batches of one leased partition for one more topic."""

    __slots__ = ("routing",)

    def __init__(self, routing: RoutingQueue, topic: str) -> None:
        target = TopicPartition(topic, routing.lease.target.partition)
        lease = replace(routing.lease, target=target, target_topic_id="", expected=0, records=0)
        super().__init__(lease, routing.transaction)
        self.routing = routing

    @property
    def is_group_begun(self) -> bool:
        """Whether the target has or may have a batch of the group that is not complete."""
        return self.routing.is_group_begun

    def acknowledge(self, batch: PendingBatch) -> list[OffsetRun]:
        """Remove the oldest batch in flight to this topic; return its offsets."""
        runs = super().acknowledge(batch)
        self.routing.queued_bytes -= batch.size
        self.routing.records += batch.record_count
        self.routing.on_acknowledged()
        return runs

    def enqueue(self, batch: PendingBatch) -> None:
        """Queue the next batch for this topic."""
        super().enqueue(batch)
        self.routing.queued_bytes += batch.size
        self.routing.on_enqueued()

    def next_to_send(self) -> PendingBatch | None:
        """Move the next batch to in_flight and return it; None if no batch may be sent now."""
        batch = super().next_to_send()
        if batch:
            self.routing.on_sent()
        return batch

    def check_invariants(self) -> None:
        """Assert invariant B of the group."""
        self.routing.check_invariants()
