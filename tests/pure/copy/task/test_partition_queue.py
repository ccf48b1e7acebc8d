"""One partition on its way: nothing lost, nothing twice, whatever the answers are."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.copy.task.partition_queue import MAX_IN_FLIGHT_BATCHES, PartitionQueue
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.records import Record, build_batch

SOURCE = TopicPartition("orders", 3)
IDENTITY = LeaseIdentity(producer_id=7, producer_epoch=1, anchor=40)


def lease(position: int = 100, expected: int = 50) -> Lease:
    return Lease(
        source=SOURCE,
        target=TopicPartition("primary.orders", 3),
        position=position,
        expected=expected,
        identity=IDENTITY,
    )


def known(position: int = 100, expected: int = 50) -> PartitionQueue:
    """A partition whose leader has taken a batch of this lease already."""
    partition = PartitionQueue(lease(position - 1, expected - 1))
    partition.enqueue(parcel(position - 1, 1))
    sent = partition.next_to_send()
    assert sent
    partition.acknowledge(sent)
    partition.on_request_done()
    return partition


def parcel(first: int, count: int, release: Callable[[], None] = lambda: None) -> PendingBatch:
    batch = memoryview(build_batch([Record(first + n, 1, None, b"v") for n in range(count)]))
    return PendingBatch(
        header=read_header(batch),
        batch=batch,
        spans=((first, count),),
        next_source_offset=first + count,
        release=release,
    )


def test_a_parcel_is_sealed_for_the_place_where_it_must_land() -> None:
    partition = known()
    partition.enqueue(parcel(100, 3))
    partition.enqueue(parcel(103, 2))
    first, second = partition.next_to_send(), partition.next_to_send()
    assert first and second
    assert (first.expected, second.expected) == (50, 53)
    sealed = read_header(first.buffers[0])
    assert (sealed.producer_id, sealed.producer_epoch, sealed.base_sequence) == (7, 1, 10)
    assert read_header(second.buffers[0]).base_sequence == 13


def test_an_acknowledgement_moves_both_sides_and_gives_the_exact_run() -> None:
    released: list[int] = []
    partition = PartitionQueue(lease())
    partition.enqueue(parcel(100, 3, lambda: released.append(1)))
    sent = partition.next_to_send()
    assert sent
    assert partition.acknowledge(sent) == [OffsetRun(100, 50, 3)]
    assert (partition.position, partition.expected, partition.records) == (103, 53, 3)
    assert released == [1]


def test_what_holds_nothing_to_copy_moves_the_position_only_behind_the_queue() -> None:
    partition = PartitionQueue(lease())
    partition.skip_to(105)
    assert partition.position == 105
    partition.enqueue(parcel(105, 2))
    partition.skip_to(110)
    assert (partition.position, partition.next_fetch_offset) == (105, 110)
    sent = partition.next_to_send()
    assert sent
    partition.acknowledge(sent)
    assert partition.position == 110


def test_no_more_is_in_flight_than_a_broker_recognises() -> None:
    partition = known()
    for n in range(MAX_IN_FLIGHT_BATCHES + 2):
        partition.enqueue(parcel(100 + n, 1))
    sent = [partition.next_to_send() for _ in range(MAX_IN_FLIGHT_BATCHES + 2)]
    assert [bool(one) for one in sent] == [True] * MAX_IN_FLIGHT_BATCHES + [False, False]


def test_sent_again_only_when_no_request_holds_it_and_unchanged() -> None:
    partition = known()
    partition.enqueue(parcel(100, 1))
    partition.enqueue(parcel(101, 1))
    first, second = partition.next_to_send(), partition.next_to_send()
    assert first and second
    bytes_before = [bytes(part) for part in first.buffers]
    partition.resend_in_flight()
    assert partition.next_to_send() is None
    partition.on_request_done()
    assert partition.next_to_send() is None
    partition.on_request_done()
    assert partition.next_to_send() is first
    assert partition.next_to_send() is None, "after trouble the first one goes alone again"
    partition.acknowledge(first)
    assert [bytes(part) for part in first.buffers] == bytes_before
    assert partition.next_to_send() is second


def test_an_acknowledgement_out_of_order_is_a_fault() -> None:
    partition = known()
    partition.enqueue(parcel(100, 1))
    partition.enqueue(parcel(101, 1))
    partition.next_to_send()
    second = partition.next_to_send()
    assert second
    with pytest.raises(AssertionError):
        partition.acknowledge(second)


def test_closing_lets_go_of_what_was_never_sent_and_keeps_what_was() -> None:
    released: list[str] = []
    partition = PartitionQueue(lease())
    partition.enqueue(parcel(100, 1, lambda: released.append("sent")))
    partition.enqueue(parcel(101, 4, lambda: released.append("unsent")))
    sent = partition.next_to_send()
    assert sent
    partition.drop_unsent()
    assert released == ["unsent"]
    assert (partition.next_fetch_offset, partition.next_expected) == (101, 51)
    partition.acknowledge(sent)
    partition.on_request_done()
    assert not partition.unacknowledged()
    assert partition.abandon().position == 101


def test_settling_acknowledges_everything_below_what_the_broker_holds() -> None:
    partition = known()
    for n in range(4):
        partition.enqueue(parcel(100 + 2 * n, 2))
        partition.next_to_send()
    runs: list[OffsetRun] = []
    assert partition.acknowledge_up_to(55, lambda _, found: runs.extend(found)) == 2
    assert runs == [OffsetRun(100, 50, 2), OffsetRun(102, 52, 2)]
    assert partition.expected == 54


class Broker:
    """A target that appends by sequence, forgets answers, and recognises what it has."""

    def __init__(self, end: int) -> None:
        self.log: list[int] = []
        self.end = end

    def take(self, sent: PendingBatch) -> bool:
        """Append the parcel, or recognise it; say whether it is there now."""
        if sent.expected == self.end:
            self.log += [offset for first, n in sent.spans for offset in range(first, first + n)]
            self.end += sent.record_count
            return True
        return sent.expected + sent.record_count <= self.end


@given(st.randoms(use_true_random=False), st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_every_record_arrives_once_and_in_order(rng: random.Random, counts: list[int]) -> None:
    """Answers get lost, requests fail, everything is repeated: the log stays exact."""
    partition, broker, runs = PartitionQueue(lease(0, 40)), Broker(40), RunMap()
    at = 0
    for count in counts:
        partition.enqueue(parcel(at, count))
        at += count + rng.choice([0, 0, 3])
        if rng.random() < 0.2:
            partition.skip_to(max(at, partition.next_fetch_offset))
        at = max(at, partition.next_fetch_offset)
    flying: deque[PendingBatch] = deque()
    while partition.unacknowledged() or partition.open_requests:
        sent = partition.next_to_send()
        if sent and rng.random() < 0.7:
            flying.append(sent)
            continue
        if sent:
            flying.append(sent)
        while flying:
            one = flying.popleft()
            landed = broker.take(one) if rng.random() < 0.8 else False
            if landed and rng.random() < 0.7 and partition.is_oldest_in_flight(one):
                for run in partition.acknowledge(one):
                    runs.append(*run)
            else:
                partition.resend_in_flight()
            partition.on_request_done()
        partition.check_invariants()
    assert broker.log == sorted(set(broker.log))
    assert len(broker.log) == sum(counts)
    assert all(runs.translate_downstream(offset) == 40 + n for n, offset in enumerate(broker.log))


def test_the_first_batch_of_a_lease_goes_alone() -> None:
    partition = PartitionQueue(lease())
    for n in range(3):
        partition.enqueue(parcel(100 + n, 1))
    first = partition.next_to_send()
    assert first
    assert partition.next_to_send() is None, "a broker takes any sequence of an unknown producer"
    partition.acknowledge(first)
    assert partition.next_to_send() and partition.next_to_send()


def test_only_what_may_have_been_appended_is_in_doubt() -> None:
    partition = PartitionQueue(lease())
    partition.enqueue(parcel(100, 1))
    sent = partition.next_to_send()
    assert sent
    assert not partition.is_unambiguous
    partition.resend_in_flight()
    partition.on_request_done()
    assert partition.next_to_send() is sent
    partition.mark_not_appended(sent)
    assert not partition.is_unambiguous, "the first request may still have appended it"
    partition.mark_not_appended(sent)
    assert partition.is_unambiguous
