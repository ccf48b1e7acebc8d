"""The queue of one partition: no loss and no duplicates, whatever the responses are."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.lease import NOT_IDEMPOTENT, LeaseIdentity
from sparkmirror.copy.task.produce.partition_queue import MAX_IN_FLIGHT_BATCHES, PartitionQueue
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.mirror.offsets.run_map import OffsetRun, RunMap
from sparkmirror.wire.batch.header import read_header
from tests.support.copy.pending_batches import make_batch, make_lease


def queue_with_known_producer(position: int = 100, expected: int = 50) -> PartitionQueue:
    """Return a queue whose leader has accepted a batch of the lease."""
    queue = PartitionQueue(make_lease(position - 1, expected - 1))
    queue.enqueue(make_batch(position - 1, 1))
    sent = queue.next_to_send()
    assert sent
    queue.acknowledge(sent)
    queue.on_request_done()
    return queue


def test_a_batch_gets_its_sequence_and_its_expected_target_offset() -> None:
    queue = queue_with_known_producer()
    queue.enqueue(make_batch(100, 3))
    queue.enqueue(make_batch(103, 2))
    first, second = queue.next_to_send(), queue.next_to_send()
    assert first and second
    assert (first.expected, second.expected) == (50, 53)
    header = read_header(first.buffers[0])
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 10)
    assert read_header(second.buffers[0]).base_sequence == 13


def test_an_acknowledgement_advances_both_offsets_and_returns_the_exact_run() -> None:
    released: list[int] = []
    queue = PartitionQueue(make_lease())
    queue.enqueue(make_batch(100, 3, lambda: released.append(1)))
    sent = queue.next_to_send()
    assert sent
    assert queue.acknowledge(sent) == [OffsetRun(100, 50, 3)]
    assert (queue.position, queue.expected, queue.records) == (103, 53, 3)
    assert released == [1]


def test_skipped_offsets_advance_the_position_only_after_the_queue() -> None:
    queue = PartitionQueue(make_lease())
    queue.skip_to(105)
    assert queue.position == 105
    queue.enqueue(make_batch(105, 2))
    queue.skip_to(110)
    assert (queue.position, queue.next_fetch_offset) == (105, 110)
    sent = queue.next_to_send()
    assert sent
    queue.acknowledge(sent)
    assert queue.position == 110


def test_no_more_batches_are_in_flight_than_a_broker_recognises() -> None:
    queue = queue_with_known_producer()
    for n in range(MAX_IN_FLIGHT_BATCHES + 2):
        queue.enqueue(make_batch(100 + n, 1))
    sent = [queue.next_to_send() for _ in range(MAX_IN_FLIGHT_BATCHES + 2)]
    assert [bool(one) for one in sent] == [True] * MAX_IN_FLIGHT_BATCHES + [False, False]


def test_a_batch_is_resent_unchanged_and_only_when_no_request_contains_it() -> None:
    queue = queue_with_known_producer()
    queue.enqueue(make_batch(100, 1))
    queue.enqueue(make_batch(101, 1))
    first, second = queue.next_to_send(), queue.next_to_send()
    assert first and second
    bytes_before = [bytes(part) for part in first.buffers]
    queue.resend_in_flight()
    assert queue.next_to_send() is None
    queue.on_request_done()
    assert queue.next_to_send() is None
    queue.on_request_done()
    assert queue.next_to_send() is first
    assert queue.next_to_send() is None, "after an error the first batch is sent alone"
    queue.acknowledge(first)
    assert [bytes(part) for part in first.buffers] == bytes_before
    assert queue.next_to_send() is second


def test_an_acknowledgement_out_of_order_is_a_bug() -> None:
    queue = queue_with_known_producer()
    queue.enqueue(make_batch(100, 1))
    queue.enqueue(make_batch(101, 1))
    queue.next_to_send()
    second = queue.next_to_send()
    assert second
    with pytest.raises(AssertionError):
        queue.acknowledge(second)


def test_drop_unsent_keeps_the_batches_that_were_sent() -> None:
    released: list[str] = []
    queue = PartitionQueue(make_lease())
    queue.enqueue(make_batch(100, 1, lambda: released.append("sent")))
    queue.enqueue(make_batch(101, 4, lambda: released.append("unsent")))
    sent = queue.next_to_send()
    assert sent
    queue.drop_unsent()
    assert released == ["unsent"]
    assert (queue.next_fetch_offset, queue.next_expected) == (101, 51)
    queue.acknowledge(sent)
    queue.on_request_done()
    assert not queue.unacknowledged()
    assert queue.abandon().position == 101


def test_everything_below_the_appended_end_is_acknowledged() -> None:
    queue = queue_with_known_producer()
    for n in range(4):
        queue.enqueue(make_batch(100 + 2 * n, 2))
        queue.next_to_send()
    runs: list[OffsetRun] = []
    assert queue.acknowledge_up_to(55, lambda _, found: runs.extend(found)) == 2
    assert runs == [OffsetRun(100, 50, 2), OffsetRun(102, 52, 2)]
    assert queue.expected == 54


class Broker:
    """A target that appends by sequence and recognises the batches it has."""

    def __init__(self, end: int) -> None:
        self.log: list[int] = []
        self.end = end

    def append(self, sent: PendingBatch) -> bool:
        """Append or recognise a batch; return whether the log has it now."""
        if sent.expected == self.end:
            self.log += [offset for first, n in sent.spans for offset in range(first, first + n)]
            self.end += sent.record_count
            return True
        return sent.expected + sent.record_count <= self.end


@given(st.randoms(use_true_random=False), st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_every_record_is_appended_once_and_in_order(rng: random.Random, counts: list[int]) -> None:
    """Responses are lost, requests fail, batches are resent: the log stays exact."""
    queue, broker, runs = PartitionQueue(make_lease(0, 40)), Broker(40), RunMap()
    at = 0
    for count in counts:
        queue.enqueue(make_batch(at, count))
        at += count + rng.choice([0, 0, 3])
        if rng.random() < 0.2:
            queue.skip_to(max(at, queue.next_fetch_offset))
        at = max(at, queue.next_fetch_offset)
    in_transit: deque[PendingBatch] = deque()
    while queue.unacknowledged() or queue.open_requests:
        sent = queue.next_to_send()
        if sent and rng.random() < 0.7:
            in_transit.append(sent)
            continue
        if sent:
            in_transit.append(sent)
        while in_transit:
            one = in_transit.popleft()
            has_batch = broker.append(one) if rng.random() < 0.8 else False
            if has_batch and rng.random() < 0.7 and queue.is_oldest_in_flight(one):
                for run in queue.acknowledge(one):
                    runs.append(*run)
            else:
                queue.resend_in_flight()
            queue.on_request_done()
        queue.check_invariants()
    assert broker.log == sorted(set(broker.log))
    assert len(broker.log) == sum(counts)
    assert all(runs.translate_downstream(offset) == 40 + n for n, offset in enumerate(broker.log))


def test_the_first_batch_of_a_lease_is_sent_alone() -> None:
    queue = PartitionQueue(make_lease())
    for n in range(3):
        queue.enqueue(make_batch(100 + n, 1))
    first = queue.next_to_send()
    assert first
    assert queue.next_to_send() is None, "a broker accepts any sequence of an unknown producer"
    queue.acknowledge(first)
    assert queue.next_to_send() and queue.next_to_send()


def test_only_a_batch_that_may_have_been_appended_is_ambiguous() -> None:
    queue = PartitionQueue(make_lease())
    queue.enqueue(make_batch(100, 1))
    sent = queue.next_to_send()
    assert sent
    assert not queue.is_unambiguous
    queue.resend_in_flight()
    queue.on_request_done()
    assert queue.next_to_send() is sent
    queue.mark_not_appended(sent)
    assert not queue.is_unambiguous, "the first request may still have appended it"
    queue.mark_not_appended(sent)
    assert queue.is_unambiguous


def queue_without_producer_id() -> PartitionQueue:
    identity = LeaseIdentity(producer_id=NOT_IDEMPOTENT, producer_epoch=-1, anchor=50)
    return PartitionQueue(replace(make_lease(), identity=identity))


def test_without_a_producer_id_one_batch_is_in_flight_and_has_no_sequence() -> None:
    queue = queue_without_producer_id()
    queue.enqueue(make_batch(100, 3))
    queue.enqueue(make_batch(103, 2))
    first = queue.next_to_send()
    assert first
    assert queue.next_to_send() is None
    header = read_header(first.buffers[0])
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    queue.acknowledge(first)
    queue.on_request_done()
    assert queue.next_to_send()
    assert queue.next_to_send() is None


def test_without_a_producer_id_the_target_chooses_the_offset() -> None:
    """A batch of an earlier owner was appended late, before ours."""
    queue = queue_without_producer_id()
    queue.enqueue(make_batch(100, 3))
    queue.enqueue(make_batch(103, 2))
    first = queue.next_to_send()
    assert first
    assert not queue.accept_base_offset(first, 49), "below what was acknowledged"
    assert queue.accept_base_offset(first, 57)
    assert queue.acknowledge(first) == [OffsetRun(100, 57, 3)]
    queue.on_request_done()
    second = queue.next_to_send()
    assert second
    assert queue.accept_base_offset(second, 60)
    assert queue.acknowledge(second) == [OffsetRun(103, 60, 2)]
    queue.on_request_done()
    assert (queue.position, queue.expected, queue.records) == (105, 62, 5)
    queue.check_invariants()
