"""One partition on its way: nothing lost, nothing twice, whatever the answers are."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.lease import Identity, Lease
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.partition import DEDUPLICATED, Partition
from sparkmirror.mirror.runs import Run, RunMap
from sparkmirror.model import TopicPartition
from sparkmirror.wire.header import read_header
from sparkmirror.wire.records import Record, build

SOURCE = TopicPartition("orders", 3)
IDENTITY = Identity(producer_id=7, producer_epoch=1, anchor=40)


def lease(position: int = 100, expected: int = 50) -> Lease:
    return Lease(
        source=SOURCE,
        target=TopicPartition("primary.orders", 3),
        position=position,
        expected=expected,
        identity=IDENTITY,
    )


def known(position: int = 100, expected: int = 50) -> Partition:
    """A partition whose leader has taken a batch of this lease already."""
    partition = Partition(lease(position - 1, expected - 1))
    partition.arrived(parcel(position - 1, 1))
    sent = partition.next_to_send()
    assert sent
    partition.acknowledged(sent)
    partition.answered()
    return partition


def parcel(first: int, count: int, release: Callable[[], None] = lambda: None) -> Parcel:
    batch = memoryview(build([Record(first + n, 1, None, b"v") for n in range(count)]))
    return Parcel(
        header=read_header(batch),
        batch=batch,
        spans=((first, count),),
        source_next=first + count,
        release=release,
    )


def test_a_parcel_is_sealed_for_the_place_where_it_must_land() -> None:
    partition = known()
    partition.arrived(parcel(100, 3))
    partition.arrived(parcel(103, 2))
    first, second = partition.next_to_send(), partition.next_to_send()
    assert first and second
    assert (first.expected, second.expected) == (50, 53)
    sealed = read_header(first.buffers[0])
    assert (sealed.producer_id, sealed.producer_epoch, sealed.base_sequence) == (7, 1, 10)
    assert read_header(second.buffers[0]).base_sequence == 13


def test_an_acknowledgement_moves_both_sides_and_gives_the_exact_run() -> None:
    released: list[int] = []
    partition = Partition(lease())
    partition.arrived(parcel(100, 3, lambda: released.append(1)))
    sent = partition.next_to_send()
    assert sent
    assert partition.acknowledged(sent) == [Run(100, 50, 3)]
    assert (partition.position, partition.expected, partition.records) == (103, 53, 3)
    assert released == [1]


def test_what_holds_nothing_to_copy_moves_the_position_only_behind_the_queue() -> None:
    partition = Partition(lease())
    partition.passed(105)
    assert partition.position == 105
    partition.arrived(parcel(105, 2))
    partition.passed(110)
    assert (partition.position, partition.fetched) == (105, 110)
    sent = partition.next_to_send()
    assert sent
    partition.acknowledged(sent)
    assert partition.position == 110


def test_no_more_is_in_flight_than_a_broker_recognises() -> None:
    partition = known()
    for n in range(DEDUPLICATED + 2):
        partition.arrived(parcel(100 + n, 1))
    sent = [partition.next_to_send() for _ in range(DEDUPLICATED + 2)]
    assert [bool(one) for one in sent] == [True] * DEDUPLICATED + [False, False]


def test_sent_again_only_when_no_request_holds_it_and_unchanged() -> None:
    partition = known()
    partition.arrived(parcel(100, 1))
    partition.arrived(parcel(101, 1))
    first, second = partition.next_to_send(), partition.next_to_send()
    assert first and second
    bytes_before = [bytes(part) for part in first.buffers]
    partition.send_again()
    assert partition.next_to_send() is None
    partition.answered()
    assert partition.next_to_send() is None
    partition.answered()
    assert partition.next_to_send() is first
    assert partition.next_to_send() is None, "after trouble the first one goes alone again"
    partition.acknowledged(first)
    assert [bytes(part) for part in first.buffers] == bytes_before
    assert partition.next_to_send() is second


def test_an_acknowledgement_out_of_order_is_a_fault() -> None:
    partition = known()
    partition.arrived(parcel(100, 1))
    partition.arrived(parcel(101, 1))
    partition.next_to_send()
    second = partition.next_to_send()
    assert second
    with pytest.raises(AssertionError):
        partition.acknowledged(second)


def test_closing_lets_go_of_what_was_never_sent_and_keeps_what_was() -> None:
    released: list[str] = []
    partition = Partition(lease())
    partition.arrived(parcel(100, 1, lambda: released.append("sent")))
    partition.arrived(parcel(101, 4, lambda: released.append("unsent")))
    sent = partition.next_to_send()
    assert sent
    partition.drop_unsent()
    assert released == ["unsent"]
    assert (partition.fetched, partition.next_expected) == (101, 51)
    partition.acknowledged(sent)
    partition.answered()
    assert partition.is_idle
    assert partition.abandon().position == 101


def test_settling_acknowledges_everything_below_what_the_broker_holds() -> None:
    partition = known()
    for n in range(4):
        partition.arrived(parcel(100 + 2 * n, 2))
        partition.next_to_send()
    runs: list[Run] = []
    assert partition.settle(55, lambda _, found: runs.extend(found)) == 2
    assert runs == [Run(100, 50, 2), Run(102, 52, 2)]
    assert partition.expected == 54


class Broker:
    """A target that appends by sequence, forgets answers, and recognises what it has."""

    def __init__(self, end: int) -> None:
        self.log: list[int] = []
        self.end = end

    def take(self, sent: Parcel) -> bool:
        """Append the parcel, or recognise it; say whether it is there now."""
        if sent.expected == self.end:
            self.log += [offset for first, n in sent.spans for offset in range(first, first + n)]
            self.end += sent.count
            return True
        return sent.expected + sent.count <= self.end


@given(st.randoms(use_true_random=False), st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_every_record_arrives_once_and_in_order(rng: random.Random, counts: list[int]) -> None:
    """Answers get lost, requests fail, everything is repeated: the log stays exact."""
    partition, broker, runs = Partition(lease(0, 40)), Broker(40), RunMap()
    at = 0
    for count in counts:
        partition.arrived(parcel(at, count))
        at += count + rng.choice([0, 0, 3])
        if rng.random() < 0.2:
            partition.passed(max(at, partition.fetched))
        at = max(at, partition.fetched)
    flying: deque[Parcel] = deque()
    while not partition.is_idle:
        sent = partition.next_to_send()
        if sent and rng.random() < 0.7:
            flying.append(sent)
            continue
        if sent:
            flying.append(sent)
        while flying:
            one = flying.popleft()
            landed = broker.take(one) if rng.random() < 0.8 else False
            if landed and rng.random() < 0.7 and partition.is_oldest(one):
                for run in partition.acknowledged(one):
                    runs.append(*run)
            else:
                partition.send_again()
            partition.answered()
        partition.check()
    assert broker.log == sorted(set(broker.log))
    assert len(broker.log) == sum(counts)
    assert all(runs.downstream(offset) == 40 + n for n, offset in enumerate(broker.log))


def test_the_first_batch_of_a_lease_goes_alone() -> None:
    partition = Partition(lease())
    for n in range(3):
        partition.arrived(parcel(100 + n, 1))
    first = partition.next_to_send()
    assert first
    assert partition.next_to_send() is None, "a broker takes any sequence of an unknown producer"
    partition.acknowledged(first)
    assert partition.next_to_send() and partition.next_to_send()


def test_only_what_may_have_been_appended_is_in_doubt() -> None:
    partition = Partition(lease())
    partition.arrived(parcel(100, 1))
    sent = partition.next_to_send()
    assert sent
    assert not partition.is_certain
    partition.send_again()
    partition.answered()
    assert partition.next_to_send() is sent
    partition.refused(sent)
    assert not partition.is_certain, "the first request may still have appended it"
    partition.refused(sent)
    assert partition.is_certain
