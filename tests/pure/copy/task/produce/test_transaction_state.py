"""The transactions of a task: one sequence per batch, no gaps, nothing after a failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.lease import TRANSACTIONAL_IDENTITY, Lease
from sparkmirror.copy.task.produce.partition_queue import MAX_IN_FLIGHT_BATCHES, PartitionQueue
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.produce.transaction_state import Transaction, TransactionPhase
from sparkmirror.copy.transactional_producer_config import TransactionalProducer
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import BatchHeader, read_header
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from tests.support.copy.pending_batches import make_batch

TARGET = TopicPartition("primary.orders", 3)
PRODUCER = TransactionalProducer(
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


def sent_header(one: PendingBatch) -> BatchHeader:
    return read_header(one.buffers[0])


def send_next(queue: PartitionQueue) -> PendingBatch:
    one = queue.next_to_send()
    assert one
    return one


def acknowledge_at(queue: PartitionQueue, one: PendingBatch, at: int) -> list[OffsetRun]:
    assert queue.accept_base_offset(one, at)
    runs = queue.acknowledge(one)
    queue.on_request_done()
    return runs


def test_a_batch_gets_its_sequence_when_it_is_sent_from_0_on() -> None:
    queue = PartitionQueue(LEASE, Transaction(PRODUCER))
    first, second = make_batch(100, 3), make_batch(103, 2)
    queue.enqueue(first)
    queue.enqueue(second)
    assert not first.has_sequence
    assert send_next(queue) is first
    assert send_next(queue) is second
    assert [sent_header(one).base_sequence for one in (first, second)] == [0, 3]
    assert sent_header(first).is_transactional
    assert (sent_header(first).producer_id, sent_header(first).producer_epoch) == (7, 4)


@pytest.mark.parametrize(
    ("version", "sequence"), [(2, 0), (1, 3)], ids=["from-0-again", "continues"]
)
def test_the_sequences_of_the_next_transaction_follow_the_transaction_version(
    version: int, sequence: int
) -> None:
    transaction = Transaction(replace(PRODUCER, transaction_version=version))
    transaction.on_partitions_added({TARGET})
    queue = PartitionQueue(LEASE, transaction)
    queue.enqueue(make_batch(100, 3))
    acknowledge_at(queue, send_next(queue), 50)
    transaction.phase = TransactionPhase.COMMITTING
    transaction.on_ended(ProducerIdAndEpoch(7, 5))
    transaction.on_partitions_added({TARGET})
    queue.enqueue(make_batch(103, 1))
    one = send_next(queue)
    assert (sent_header(one).producer_epoch, sent_header(one).base_sequence) == (5, sequence)


def test_before_version_2_batches_wait_until_their_partition_is_added() -> None:
    transaction = Transaction(replace(PRODUCER, transaction_version=0))
    queue = PartitionQueue(LEASE, transaction)
    queue.enqueue(make_batch(100, 1))
    assert queue.next_to_send() is None
    assert transaction.partitions_to_add == {TARGET}
    transaction.on_partitions_added({TARGET})
    assert not transaction.partitions_to_add
    send_next(queue)


def test_a_closing_transaction_resends_old_batches_and_sends_no_new_ones() -> None:
    transaction = Transaction(PRODUCER)
    queue = PartitionQueue(LEASE, transaction)
    queue.enqueue(make_batch(100, 1))
    queue.enqueue(make_batch(101, 1))
    first = send_next(queue)
    as_sent = bytes(first.buffers[0])
    transaction.phase = TransactionPhase.CLOSING
    queue.resend_in_flight()
    queue.on_request_done()
    assert send_next(queue) is first
    assert bytes(first.buffers[0]) == as_sent
    acknowledge_at(queue, first, 50)
    assert queue.next_to_send() is None


def test_a_batch_that_was_not_appended_gets_a_new_sequence() -> None:
    transaction = Transaction(PRODUCER)
    queue = PartitionQueue(LEASE, transaction)
    for n in range(3):
        queue.enqueue(make_batch(100 + n, 1))
    acknowledge_at(queue, send_next(queue), 50)
    for one in (send_next(queue), send_next(queue)):
        queue.mark_not_appended(one)
    for _ in range(2):
        queue.on_request_done()
    assert queue.is_unambiguous
    queue.reset_unappended()
    assert not queue.has_sequenced_batches
    again = send_next(queue)
    assert sent_header(again).base_sequence == 1, "the first batch has sequence 0"


def test_the_target_chooses_the_offset_but_never_an_earlier_one() -> None:
    queue = PartitionQueue(LEASE, Transaction(PRODUCER))
    queue.enqueue(make_batch(100, 2))
    queue.enqueue(make_batch(102, 2))
    assert acknowledge_at(queue, send_next(queue), 57) == [OffsetRun(100, 57, 2)]
    second = send_next(queue)
    assert not queue.accept_base_offset(second, 58), "the batch before has that offset"
    assert acknowledge_at(queue, second, 60) == [OffsetRun(102, 60, 2)]
    queue.check_invariants()


def test_the_durable_lease_is_the_committed_one() -> None:
    queue = PartitionQueue(LEASE, Transaction(PRODUCER))
    queue.enqueue(make_batch(100, 2))
    seen = [queue.is_committed]
    one = send_next(queue)
    seen.append(queue.is_committed)
    acknowledge_at(queue, one, 50)
    seen.append(queue.is_committed)
    assert queue.durable_lease == LEASE
    queue.on_committed(queue.acknowledged_lease)
    seen.append(queue.is_committed)
    assert seen == [True, False, False, True]
    assert queue.durable_lease.position == 102
    assert queue.abandon() == LEASE.advanced_to(102, 52, 2)


def test_offsets_without_records_are_committed_too() -> None:
    queue = PartitionQueue(LEASE, Transaction(PRODUCER))
    queue.skip_to(110)
    assert not queue.is_committed
    assert queue.acknowledged_lease.position == 110


def test_with_version_2_several_batches_are_in_flight_at_once() -> None:
    for version, limit in ((2, MAX_IN_FLIGHT_BATCHES), (1, 1)):
        transaction = Transaction(replace(PRODUCER, transaction_version=version))
        transaction.on_partitions_added({TARGET})
        queue = PartitionQueue(LEASE, transaction)
        for n in range(10):
            queue.enqueue(make_batch(100 + n, 1))
        assert sum(queue.next_to_send() is not None for _ in range(10)) == limit


def test_nothing_is_sent_after_a_failure_and_the_first_reason_stays() -> None:
    transaction = Transaction(PRODUCER)
    queue = PartitionQueue(LEASE, transaction)
    queue.enqueue(make_batch(100, 1))
    transaction.fail(LeaseEndReason.FENCED, "another owner")
    transaction.fail(LeaseEndReason.AMBIGUOUS, "later")
    assert queue.next_to_send() is None
    assert transaction.failure == (LeaseEndReason.FENCED, "another owner")


def test_dropped_batches_leave_no_gap_in_the_sequences() -> None:
    transaction = Transaction(PRODUCER)
    queue = PartitionQueue(LEASE, transaction)
    queue.enqueue(make_batch(100, 5))
    one = send_next(queue)
    queue.mark_not_appended(one)
    queue.resend_in_flight()
    queue.on_request_done()
    queue.drop_unsent()
    assert not queue.unacknowledged()
    queue.enqueue(make_batch(100, 5))
    assert sent_header(send_next(queue)).base_sequence == 0


def test_a_transactional_producer_travels_as_json() -> None:
    assert TransactionalProducer.from_json(PRODUCER.to_json()) == PRODUCER
