"""Which batches go into one Produce request, and what a closed lease still sends."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pytest

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.cluster_connections import ClusterConnections
from sparkmirror.copy.task.leased_partition import REACHABLE, LeasedPartition
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.sender import Sender, choose_batches
from sparkmirror.copy.task.reports import TaskReporter
from sparkmirror.wire.batch.target_limits import UNLIMITED_BYTES, TargetLimits
from sparkmirror.wire.net.buffer_pool import MemoryBudget
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.produce import PartitionProduceResponse, ProduceResponseData
from tests.support.copy.pending_batches import (
    make_batch,
    make_lease,
    make_partition,
    without_producer_id,
)

OVERHEAD = 100


class CountedPartitions(deque[LeasedPartition]):
    """Counts how many of its partitions the sender looks at."""

    looks = 0

    def __iter__(self) -> Iterator[LeasedPartition]:
        for partition in super().__iter__():
            self.looks += 1
            yield partition


def _partitions(count: int) -> CountedPartitions:
    made = CountedPartitions()
    for number in range(count):
        queue = PartitionQueue(make_lease(partition=number))
        queue.enqueue(make_batch(100, 2))
        queue.is_producer_known = True
        made.append(LeasedPartition(queue, BatchConverter(TargetLimits())))
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
    assert partitions.looks == 3
    assert _numbers(partitions)[:3] == [2, 3, 4]


def test_a_batch_that_is_alone_is_sent_whatever_its_size() -> None:
    partitions = _partitions(2)
    chosen, is_full = choose_batches(partitions, OVERHEAD, 1)
    assert ([one.source.partition for one, _ in chosen], is_full) == ([0], True)


def test_without_a_limit_every_partition_sends() -> None:
    chosen, is_full = choose_batches(_partitions(9), OVERHEAD, UNLIMITED_BYTES)
    assert (len(chosen), is_full) == (9, False)


@pytest.fixture
def sender() -> Iterator[Sender]:
    """A sender whose cluster is never connected."""
    loop = EventLoop()
    target = ClusterConnections(loop, ClientConfig(cluster="target"), [], MemoryBudget(0))
    yield Sender(target, TaskReporter(1.0, lambda _: None, lambda _: REACHABLE), 5, 15.0, 60.0)
    loop.close()


def _with_one_batch_in_flight(lease: Lease) -> LeasedPartition:
    queue = PartitionQueue(lease)
    queue.enqueue(make_batch(100, 2))
    assert queue.next_to_send()
    return make_partition(queue)


def _answer(sender: Sender, partition: LeasedPartition, code: ErrorCode) -> None:
    topic, number = partition.target
    answer = PartitionProduceResponse(topic, number, code.value, -1, -1, -1, (), None, None)
    response = ProduceResponseData(
        throttle_time_ms=0, partition_responses={(topic, number): answer}, node_endpoints=()
    )
    batch = partition.queue.in_flight[0]
    sender._on_response(1, 0.0, {(topic, number): (partition, batch)}, response)


def test_the_bytes_of_a_partition_that_cannot_be_sent_are_blocked(sender: Sender) -> None:
    queue = PartitionQueue(make_lease())
    queue.enqueue(make_batch(100, 2))
    partition = make_partition(queue)
    sender.mark_ready(partition)
    sender.poll(1.0)
    assert sender.blocked_bytes == queue.queued_bytes > 0, "its target has no known leader"
    assert queue.next_to_send()
    sender.poll(1.0)
    assert sender.blocked_bytes == 0, "nothing is ready"


NOT_APPENDED = [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
LEASES = {"at-least-once": without_producer_id(make_lease()), "sequenced": make_lease()}


@pytest.mark.parametrize("code", NOT_APPENDED, ids=str)
@pytest.mark.parametrize("lease", LEASES.values(), ids=LEASES)
def test_a_closed_lease_does_not_send_again_what_the_target_lacks(
    sender: Sender, lease: Lease, code: ErrorCode
) -> None:
    """Its next owner may have copied the records before the target takes a batch again."""
    partition = _with_one_batch_in_flight(lease)
    partition.close()
    _answer(sender, partition, code)
    assert (partition.is_ended, partition.end_reason) == (True, LeaseEndReason.CLOSED)
    assert partition.queue.is_unambiguous
    assert partition.queue.unacknowledged() == ()
    assert partition.queue.next_fetch_offset == partition.queue.position == 100


def test_a_closed_lease_sends_a_batch_with_an_unknown_outcome_again(sender: Sender) -> None:
    partition = _with_one_batch_in_flight(make_lease())
    partition.close()
    _answer(sender, partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert not partition.is_ended
    assert len(partition.queue.ready) == 1


def test_an_open_lease_sends_again_what_the_target_lacks(sender: Sender) -> None:
    partition = _with_one_batch_in_flight(without_producer_id(make_lease()))
    _answer(sender, partition, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert not partition.is_ending
    assert len(partition.queue.ready) == 1
