"""Which batches go into one Produce request."""

from __future__ import annotations

from collections import deque

from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.sender import choose_batches
from sparkmirror.wire.batch.target_limits import UNLIMITED_BYTES, TargetLimits
from tests.support.copy.pending_batches import make_batch, make_lease

OVERHEAD = 100


class CountedPartition(LeasedPartition):
    """Counts how often the sender looks at it."""

    looks = 0

    @property
    def can_send(self) -> bool:
        self.looks += 1
        return super().can_send


def _partitions(count: int) -> deque[LeasedPartition]:
    made: deque[LeasedPartition] = deque()
    for number in range(count):
        queue = PartitionQueue(make_lease(partition=number))
        queue.enqueue(make_batch(100, 2))
        queue.is_producer_known = True
        made.append(CountedPartition(queue, BatchConverter(TargetLimits())))
    return made


def _room_for(partitions: deque[LeasedPartition], batches: int) -> int:
    first = partitions[0]
    return OVERHEAD + batches * (first.queue.ready[0].size + first.produce_overhead)


def _numbers(partitions: deque[LeasedPartition]) -> list[int]:
    return [partition.source.partition for partition in partitions]


def test_the_batches_that_do_not_fit_are_the_first_ones_of_the_next_request() -> None:
    partitions = _partitions(5)
    limit = _room_for(partitions, 2)
    chosen, is_full = choose_batches(partitions, OVERHEAD, limit)
    assert ([one.source.partition for one, _ in chosen], is_full) == ([0, 1], True)
    assert _numbers(partitions) == [2, 3, 4, 0, 1]
    chosen, is_full = choose_batches(partitions, OVERHEAD, limit)
    assert ([one.source.partition for one, _ in chosen], is_full) == ([2, 3], True)
    chosen, is_full = choose_batches(partitions, OVERHEAD, limit)
    assert ([one.source.partition for one, _ in chosen], is_full) == ([4], False)


def test_a_full_request_ends_the_search() -> None:
    partitions = _partitions(50)
    chosen, _ = choose_batches(partitions, OVERHEAD, _room_for(partitions, 2))
    assert len(chosen) == 2
    looked_at = [p for p in partitions if isinstance(p, CountedPartition) and p.looks]
    assert _numbers(deque(looked_at)) == [2, 0, 1]


def test_a_batch_that_is_alone_is_sent_whatever_its_size() -> None:
    partitions = _partitions(2)
    chosen, is_full = choose_batches(partitions, OVERHEAD, 1)
    assert ([one.source.partition for one, _ in chosen], is_full) == ([0], True)


def test_without_a_limit_every_partition_sends() -> None:
    chosen, is_full = choose_batches(_partitions(9), OVERHEAD, UNLIMITED_BYTES)
    assert (len(chosen), is_full) == (9, False)
