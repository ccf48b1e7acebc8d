"""The transactions of a task: sealed once, numbered without gaps, nothing after a failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.lease import TRANSACTIONAL_IDENTITY, Lease
from sparkmirror.copy.task.partition_queue import MAX_IN_FLIGHT_BATCHES, PartitionQueue
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.copy.task.transaction import Transaction, TransactionPhase
from sparkmirror.copy.transactional_producer import TransactionalProducer
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import BatchHeader, read_header
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch

TARGET = TopicPartition("primary.orders", 3)
TERM = TransactionalProducer(
    transactional_id="group-connector-0",
    identity=ProducerIdAndEpoch(7, 4),
    transaction_version=2,
    connector="connector",
    offsets_topic="offsets",
    commit_interval_s=0.1,
)
LEASE = Lease(
    source=TopicPartition("orders", 3),
    target=TARGET,
    position=100,
    expected=50,
    identity=TRANSACTIONAL_IDENTITY,
)


def parcel(first: int, count: int) -> PendingBatch:
    batch = memoryview(build_batch([Record(first + n, 1, None, b"v") for n in range(count)]))
    return PendingBatch(
        header=read_header(batch),
        batch=batch,
        spans=((first, count),),
        next_source_offset=first + count,
        release=lambda: None,
    )


def sealed(one: PendingBatch) -> BatchHeader:
    return read_header(one.buffers[0])


def sent(partition: PartitionQueue) -> PendingBatch:
    one = partition.next_to_send()
    assert one
    return one


def landed(partition: PartitionQueue, one: PendingBatch, at: int) -> list[OffsetRun]:
    assert partition.accept_base_offset(one, at)
    runs = partition.acknowledge(one)
    partition.on_request_done()
    return runs


def test_a_batch_is_sealed_when_it_is_sent_and_numbered_from_0() -> None:
    partition = PartitionQueue(LEASE, Transaction(TERM))
    first, second = parcel(100, 3), parcel(103, 2)
    partition.enqueue(first)
    partition.enqueue(second)
    assert not first.has_sequence
    assert sent(partition) is first
    assert sent(partition) is second
    assert [sealed(one).base_sequence for one in (first, second)] == [0, 3]
    assert sealed(first).is_transactional
    assert (sealed(first).producer_id, sealed(first).producer_epoch) == (7, 4)


@pytest.mark.parametrize(("version", "sequence"), [(2, 0), (1, 3)], ids=["raises", "goes-on"])
def test_the_next_transaction_is_numbered_as_the_cluster_does_it(
    version: int, sequence: int
) -> None:
    transaction = Transaction(replace(TERM, transaction_version=version))
    transaction.on_partitions_added({TARGET})
    partition = PartitionQueue(LEASE, transaction)
    partition.enqueue(parcel(100, 3))
    landed(partition, sent(partition), 50)
    transaction.phase = TransactionPhase.COMMITTING
    transaction.on_ended(ProducerIdAndEpoch(7, 5))
    transaction.on_partitions_added({TARGET})
    partition.enqueue(parcel(103, 1))
    one = sent(partition)
    assert (sealed(one).producer_epoch, sealed(one).base_sequence) == (5, sequence)


def test_where_batches_do_not_join_by_themselves_they_wait_for_their_partition() -> None:
    transaction = Transaction(replace(TERM, transaction_version=0))
    partition = PartitionQueue(LEASE, transaction)
    partition.enqueue(parcel(100, 1))
    assert partition.next_to_send() is None
    assert transaction.partitions_to_add == {TARGET}
    transaction.on_partitions_added({TARGET})
    assert not transaction.partitions_to_add
    sent(partition)


def test_closing_sends_again_what_was_sealed_and_nothing_new() -> None:
    transaction = Transaction(TERM)
    partition = PartitionQueue(LEASE, transaction)
    partition.enqueue(parcel(100, 1))
    partition.enqueue(parcel(101, 1))
    first = sent(partition)
    as_sent = bytes(first.buffers[0])
    transaction.phase = TransactionPhase.CLOSING
    partition.resend_in_flight()
    partition.on_request_done()
    assert sent(partition) is first
    assert bytes(first.buffers[0]) == as_sent
    landed(partition, first, 50)
    assert partition.next_to_send() is None


def test_what_was_certainly_not_appended_is_numbered_anew() -> None:
    transaction = Transaction(TERM)
    partition = PartitionQueue(LEASE, transaction)
    for n in range(3):
        partition.enqueue(parcel(100 + n, 1))
    landed(partition, sent(partition), 50)
    for one in (sent(partition), sent(partition)):
        partition.mark_not_appended(one)
    for _ in range(2):
        partition.on_request_done()
    assert partition.is_unambiguous
    partition.reset_unappended()
    assert not partition.has_sequenced_batches
    again = sent(partition)
    assert sealed(again).base_sequence == 1, "the first one landed as 0"


def test_a_batch_lands_wherever_the_target_puts_it_but_never_earlier() -> None:
    partition = PartitionQueue(LEASE, Transaction(TERM))
    partition.enqueue(parcel(100, 2))
    partition.enqueue(parcel(102, 2))
    assert landed(partition, sent(partition), 57) == [OffsetRun(100, 57, 2)]
    second = sent(partition)
    assert not partition.accept_base_offset(second, 58), "there lies the one before"
    assert landed(partition, second, 60) == [OffsetRun(102, 60, 2)]
    partition.check_invariants()


def test_a_partition_stands_where_it_was_committed() -> None:
    partition = PartitionQueue(LEASE, Transaction(TERM))
    partition.enqueue(parcel(100, 2))
    seen = [partition.is_committed]
    one = sent(partition)
    seen.append(partition.is_committed)
    landed(partition, one, 50)
    seen.append(partition.is_committed)
    assert partition.durable_lease == LEASE
    partition.on_committed(partition.acknowledged_lease)
    seen.append(partition.is_committed)
    assert seen == [True, False, False, True]
    assert partition.durable_lease.position == 102
    assert partition.abandon() == LEASE.advanced_to(102, 52, 2)


def test_offsets_without_records_are_committed_too() -> None:
    partition = PartitionQueue(LEASE, Transaction(TERM))
    partition.skip_to(110)
    assert not partition.is_committed
    assert partition.acknowledged_lease.position == 110


def test_a_broker_that_is_strict_may_be_sent_several_at_once() -> None:
    for version, at_once in ((2, MAX_IN_FLIGHT_BATCHES), (1, 1)):
        transaction = Transaction(replace(TERM, transaction_version=version))
        transaction.on_partitions_added({TARGET})
        partition = PartitionQueue(LEASE, transaction)
        for n in range(10):
            partition.enqueue(parcel(100 + n, 1))
        assert sum(partition.next_to_send() is not None for _ in range(10)) == at_once


def test_nothing_is_sent_after_a_failure_and_the_first_reason_stands() -> None:
    transaction = Transaction(TERM)
    partition = PartitionQueue(LEASE, transaction)
    partition.enqueue(parcel(100, 1))
    transaction.fail(LeaseEndReason.FENCED, "somebody else")
    transaction.fail(LeaseEndReason.AMBIGUOUS, "later")
    assert partition.next_to_send() is None
    assert transaction.failure == (LeaseEndReason.FENCED, "somebody else")


def test_what_is_dropped_unsent_leaves_no_gap() -> None:
    transaction = Transaction(TERM)
    partition = PartitionQueue(LEASE, transaction)
    partition.enqueue(parcel(100, 5))
    one = sent(partition)
    partition.mark_not_appended(one)
    partition.resend_in_flight()
    partition.on_request_done()
    partition.drop_unsent()
    assert not partition.unacknowledged()
    partition.enqueue(parcel(100, 5))
    assert sealed(sent(partition)).base_sequence == 0


def test_a_term_travels_as_json() -> None:
    assert TransactionalProducer.from_json(TERM.to_json()) == TERM
