"""The transactions of a task: sealed once, numbered without gaps, nothing after a failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.copy.lease import IN_TRANSACTIONS, Lease
from sparkmirror.copy.messages import How
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.partition import DEDUPLICATED, Partition
from sparkmirror.copy.term import Term
from sparkmirror.copy.transaction import Phase, Transaction
from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition
from sparkmirror.wire.header import Header, read_header
from sparkmirror.wire.producers import ProducerIdentity
from sparkmirror.wire.records import Record, build

TARGET = TopicPartition("primary.orders", 3)
TERM = Term(
    transactional_id="group-connector-0",
    identity=ProducerIdentity(7, 4),
    version=2,
    connector="connector",
    offsets_topic="offsets",
    commit_every_s=0.1,
)
LEASE = Lease(
    source=TopicPartition("orders", 3),
    target=TARGET,
    position=100,
    expected=50,
    identity=IN_TRANSACTIONS,
)


def parcel(first: int, count: int) -> Parcel:
    batch = memoryview(build([Record(first + n, 1, None, b"v") for n in range(count)]))
    return Parcel(
        header=read_header(batch),
        batch=batch,
        spans=((first, count),),
        source_next=first + count,
        release=lambda: None,
    )


def sealed(one: Parcel) -> Header:
    return read_header(one.buffers[0])


def sent(partition: Partition) -> Parcel:
    one = partition.next_to_send()
    assert one
    return one


def landed(partition: Partition, one: Parcel, at: int) -> list[Run]:
    assert partition.lands_at(one, at)
    runs = partition.acknowledged(one)
    partition.answered()
    return runs


def test_a_batch_is_sealed_when_it_is_sent_and_numbered_from_0() -> None:
    partition = Partition(LEASE, Transaction(TERM))
    first, second = parcel(100, 3), parcel(103, 2)
    partition.arrived(first)
    partition.arrived(second)
    assert not first.is_sealed
    assert sent(partition) is first
    assert sent(partition) is second
    assert [sealed(one).base_sequence for one in (first, second)] == [0, 3]
    assert sealed(first).is_transactional
    assert (sealed(first).producer_id, sealed(first).producer_epoch) == (7, 4)


@pytest.mark.parametrize(("version", "sequence"), [(2, 0), (1, 3)], ids=["raises", "goes-on"])
def test_the_next_transaction_is_numbered_as_the_cluster_does_it(
    version: int, sequence: int
) -> None:
    transaction = Transaction(replace(TERM, version=version))
    transaction.joined({TARGET})
    partition = Partition(LEASE, transaction)
    partition.arrived(parcel(100, 3))
    landed(partition, sent(partition), 50)
    transaction.phase = Phase.COMMITTING
    transaction.ended(ProducerIdentity(7, 5))
    transaction.joined({TARGET})
    partition.arrived(parcel(103, 1))
    one = sent(partition)
    assert (sealed(one).producer_epoch, sealed(one).base_sequence) == (5, sequence)


def test_where_batches_do_not_join_by_themselves_they_wait_for_their_partition() -> None:
    transaction = Transaction(replace(TERM, version=0))
    partition = Partition(LEASE, transaction)
    partition.arrived(parcel(100, 1))
    assert partition.next_to_send() is None
    assert transaction.wanted == {TARGET}
    transaction.joined({TARGET})
    assert not transaction.wanted
    sent(partition)


def test_closing_sends_again_what_was_sealed_and_nothing_new() -> None:
    transaction = Transaction(TERM)
    partition = Partition(LEASE, transaction)
    partition.arrived(parcel(100, 1))
    partition.arrived(parcel(101, 1))
    first = sent(partition)
    as_sent = bytes(first.buffers[0])
    transaction.phase = Phase.CLOSING
    partition.send_again()
    partition.answered()
    assert sent(partition) is first
    assert bytes(first.buffers[0]) == as_sent
    landed(partition, first, 50)
    assert partition.next_to_send() is None


def test_what_was_certainly_not_appended_is_numbered_anew() -> None:
    transaction = Transaction(TERM)
    partition = Partition(LEASE, transaction)
    for n in range(3):
        partition.arrived(parcel(100 + n, 1))
    landed(partition, sent(partition), 50)
    for one in (sent(partition), sent(partition)):
        partition.refused(one)
    for _ in range(2):
        partition.answered()
    assert partition.is_certain
    partition.unseal()
    assert not partition.has_sealed
    again = sent(partition)
    assert sealed(again).base_sequence == 1, "the first one landed as 0"


def test_a_batch_lands_wherever_the_target_puts_it_but_never_earlier() -> None:
    partition = Partition(LEASE, Transaction(TERM))
    partition.arrived(parcel(100, 2))
    partition.arrived(parcel(102, 2))
    assert landed(partition, sent(partition), 57) == [Run(100, 57, 2)]
    second = sent(partition)
    assert not partition.lands_at(second, 58), "there lies the one before"
    assert landed(partition, second, 60) == [Run(102, 60, 2)]
    partition.check()


def test_a_partition_stands_where_it_was_committed() -> None:
    partition = Partition(LEASE, Transaction(TERM))
    partition.arrived(parcel(100, 2))
    seen = [partition.is_committed]
    one = sent(partition)
    seen.append(partition.is_committed)
    landed(partition, one, 50)
    seen.append(partition.is_committed)
    assert partition.standing == LEASE
    partition.committed(partition.further)
    seen.append(partition.is_committed)
    assert seen == [True, False, False, True]
    assert partition.standing.position == 102
    assert partition.abandon() == LEASE.moved(102, 52, 2)


def test_offsets_without_records_are_committed_too() -> None:
    partition = Partition(LEASE, Transaction(TERM))
    partition.passed(110)
    assert not partition.is_committed
    assert partition.further.position == 110


def test_a_broker_that_is_strict_may_be_sent_several_at_once() -> None:
    for version, at_once in ((2, DEDUPLICATED), (1, 1)):
        transaction = Transaction(replace(TERM, version=version))
        transaction.joined({TARGET})
        partition = Partition(LEASE, transaction)
        for n in range(10):
            partition.arrived(parcel(100 + n, 1))
        assert sum(partition.next_to_send() is not None for _ in range(10)) == at_once


def test_nothing_is_sent_after_a_failure_and_the_first_reason_stands() -> None:
    transaction = Transaction(TERM)
    partition = Partition(LEASE, transaction)
    partition.arrived(parcel(100, 1))
    transaction.fail(How.FENCED, "somebody else")
    transaction.fail(How.AMBIGUOUS, "later")
    assert partition.next_to_send() is None
    assert transaction.failure == (How.FENCED, "somebody else")


def test_what_is_dropped_unsent_leaves_no_gap() -> None:
    transaction = Transaction(TERM)
    partition = Partition(LEASE, transaction)
    partition.arrived(parcel(100, 5))
    one = sent(partition)
    partition.refused(one)
    partition.send_again()
    partition.answered()
    partition.drop_unsent()
    assert not partition.queue()
    partition.arrived(parcel(100, 5))
    assert sealed(sent(partition)).base_sequence == 0


def test_a_term_travels_as_json() -> None:
    assert Term.from_json(TERM.to_json()) == TERM
