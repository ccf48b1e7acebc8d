"""Records of one partition for several topics: a commit has all of a group or nothing of it."""

from __future__ import annotations

import random
import time
from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.copy.control.messages import ControlMessage, LeaseEndReason, ProgressReport
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.leased_partition import REACHABLE, LeasedPartition
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.produce.routing_queue import RoutingQueue
from sparkmirror.copy.task.produce.transaction_manager import TransactionManager
from sparkmirror.copy.task.produce.transaction_state import Transaction, TransactionPhase
from sparkmirror.copy.task.reports import TaskReporter
from sparkmirror.copy.task.routing_partition import (
    LEADERLESS_WAIT_S,
    ROUTE_TIMEOUT_S,
    RoutingPartition,
)
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from tests.pure.copy.task.produce.test_transaction_manager import FakeBackground, FakeCommitter
from tests.pure.copy.task.produce.test_transaction_state import (
    LEASE,
    PRODUCER,
    TARGET,
    acknowledge_at,
    send_next,
)
from tests.support.copy.pending_batches import make_batch

HOME = TARGET.topic
OTHER = replace(LEASE, source=TopicPartition("pay", 3), target=TopicPartition("primary.pay", 3))


def routing_partition(lease: Lease, transaction: Transaction) -> RoutingPartition:
    queue = RoutingQueue(lease, transaction)
    return RoutingPartition(
        queue,
        BatchConverter(TargetLimits()),
        routing_queue=queue,
        forget_topic=lambda _: None,
    )


def queue_group(queue: RoutingQueue, end: int, **first_and_count: tuple[int, int]) -> None:
    """Queue one group that ends before a source offset: a batch for each topic."""
    for topic, (first, count) in first_and_count.items():
        queue.queue_for(HOME if topic == "home" else topic).enqueue(make_batch(first, count))
    queue.skip_to(end)


def test_the_position_moves_when_all_topics_have_acknowledged() -> None:
    queue = RoutingQueue(LEASE, Transaction(PRODUCER))
    queue_group(queue, 110, home=(100, 3), late=(103, 2), old=(105, 1))
    assert (queue.may_fetch_more, queue.is_group_begun) == (False, False)
    acknowledge_at(queue, send_next(queue), 50)
    assert queue.position == 100
    for topic in ("old", "late"):
        route = queue.queue_for(topic)
        assert queue.is_group_begun
        acknowledge_at(route, send_next(route), 7)
    assert (queue.position, queue.records, queue.queued_bytes) == (110, 6, 0)
    assert (queue.may_fetch_more, queue.is_group_begun) == (True, False)
    assert queue.acknowledged_lease.position == 110
    assert queue.acknowledged_lease.expected == 53


def test_a_group_that_is_begun_is_sent_to_its_end_in_a_closing_transaction() -> None:
    transaction = Transaction(PRODUCER)
    begun, waiting = RoutingQueue(LEASE, transaction), RoutingQueue(OTHER, transaction)
    queue_group(begun, 105, home=(100, 3), late=(103, 2))
    queue_group(waiting, 102, old=(100, 2))
    one = send_next(begun)
    transaction.phase = TransactionPhase.CLOSING
    assert waiting.queue_for("old").next_to_send() is None
    acknowledge_at(begun, one, 50)
    assert begun.has_sequenced_batches
    assert not begun.is_unambiguous
    assert begun.queue_for("late").next_to_send() is not None


def test_a_group_of_which_the_target_has_nothing_is_left_to_the_next_transaction() -> None:
    queue = RoutingQueue(LEASE, Transaction(PRODUCER))
    queue_group(queue, 105, home=(100, 3), late=(103, 2))
    for route in (queue, queue.queue_for("late")):
        one = send_next(route)
        route.mark_not_appended(one)
        route.resend_in_flight()
        route.on_request_done()
    assert queue.is_unambiguous
    queue.reset_unappended()
    assert not queue.has_sequenced_batches
    assert [one.has_sequence for one in queue.unacknowledged()] == [False, False]
    queue.drop_unsent()
    assert queue.unacknowledged() == ()
    assert (queue.position, queue.next_fetch_offset, queue.queued_bytes) == (100, 100, 0)


def test_a_remote_partition_is_used_by_one_queue_at_a_time() -> None:
    """The broker takes sequences in order, and one batch of a partition in a request."""
    transaction = Transaction(PRODUCER)
    queues = [RoutingQueue(lease, transaction) for lease in (LEASE, OTHER)]
    for queue in queues:
        queue_group(queue, 102, shared=(100, 2))
    first, second = (queue.queue_for("shared") for queue in queues)
    one = send_next(first)
    assert second.next_to_send() is None
    acknowledge_at(first, one, 0)
    assert read_header(send_next(second).buffers[0]).base_sequence == 2


def test_a_closed_lease_drops_a_group_that_is_not_begun_and_sends_one_that_is() -> None:
    transaction = Transaction(PRODUCER)
    partitions = [routing_partition(lease, transaction) for lease in (LEASE, OTHER)]
    for partition in partitions:
        queue_group(partition.routing_queue, 102, home=(100, 1), late=(101, 1))
    begun, waiting = partitions
    acknowledge_at(begun.queue, send_next(begun.queue), 50)
    for partition in partitions:
        partition.close()
    assert [one.is_ended for one in partitions] == [False, True]
    late = begun.routing_queue.queue_for("late")
    acknowledge_at(late, send_next(late), 9)
    assert (begun.is_ended, begun.queue.position) == (True, 102)


def test_a_group_is_not_begun_while_one_of_its_topics_has_no_leader() -> None:
    partition = routing_partition(LEASE, Transaction(PRODUCER))
    queue_group(partition.routing_queue, 102, home=(100, 1), late=(101, 1))
    leaders: dict[str, int] = {HOME: 1}

    def leader_of(remote: TopicPartition) -> int | None:
        return leaders.get(remote.topic)

    senders = list(partition.senders())
    assert [sender.target.topic for sender in senders] == [HOME, "late"]
    assert not any(sender.may_begin(leader_of, 5.0) for sender in senders)
    assert partition.needs_attention
    assert partition.progress().held_reason == "target: late-3 has no leader, or does not exist"
    assert partition.fetchable_at(1 << 20) > time.monotonic() + LEADERLESS_WAIT_S / 2
    leaders["late"] = 2
    assert all(sender.may_begin(leader_of, 6.0) for sender in senders)
    assert partition.fetchable_at(1 << 20) == 0.0
    senders[1].send_backoff.start("target: no", 7.0)
    assert partition.fetchable_at(1 << 20) == senders[1].send_backoff.until > 7.0
    assert not partition.may_begin(leader_of, 7.0)
    assert partition.progress().held_reason == "target: no"


def test_the_driver_looks_at_a_topic_that_stays_without_a_leader() -> None:
    partition = routing_partition(LEASE, Transaction(PRODUCER))
    forgotten: list[str] = []
    partition.forget_topic = forgotten.append
    queue_group(partition.routing_queue, 102, home=(100, 1), late=(101, 1))
    list(partition.senders())
    for now in (5.0, 6.0 + ROUTE_TIMEOUT_S):
        assert not partition.may_begin(lambda one: 1 if one.topic == HOME else None, now)
    assert partition.end_reason is LeaseEndReason.TOPIC_WANTED
    assert partition.shown_end == ""
    assert (partition.wanted_topic, forgotten) == ("late", ["late"])
    assert partition.is_ended
    assert partition.queue.abandon().position == 100


def test_a_report_counts_records_of_other_topics_and_has_runs_of_the_remote_topic_alone() -> None:
    sent: list[ControlMessage] = []
    reporter = TaskReporter(1.0, sent.append, lambda _: REACHABLE)
    partition = routing_partition(LEASE, Transaction(PRODUCER))
    queue_group(partition.routing_queue, 104, home=(100, 3), late=(103, 1))
    for sender in partition.senders():
        one = send_next(sender.queue)
        reporter.count(sender, one, acknowledge_at(sender.queue, one, 50))
    reporter.send_report([partition])
    (report,) = sent
    assert isinstance(report, ProgressReport)
    assert report.runs == [("orders-3", 100, 50, 3)]
    assert report.bytes["orders-3"] == make_batch(0, 3).size + make_batch(0, 1).size
    assert [one.target.topic for one, _ in reporter.receipts.list_receipts()] == ["late", HOME]


@pytest.mark.parametrize("refused", [False, True])
def test_before_version_2_a_closing_transaction_adds_the_partitions_of_a_group(
    refused: bool,
) -> None:
    background, committer = FakeBackground(), FakeCommitter()
    transaction = Transaction(replace(PRODUCER, transaction_version=1))
    partition = routing_partition(LEASE, transaction)
    late = TopicPartition("late", 3)
    committer.codes = {late: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if refused else {}
    counter = TaskReporter(1.0, lambda _: None, lambda _: REACHABLE)
    manager = TransactionManager(background, transaction, committer, counter, lambda: 1.0)
    queue_group(partition.routing_queue, 102, home=(100, 1), late=(101, 1))
    assert partition.queue.next_to_send() is None
    manager.poll([partition], 1.0)
    background.run()
    acknowledge_at(partition.queue, send_next(partition.queue), 50)
    manager.poll([partition], 1.0)
    assert transaction.phase is TransactionPhase.CLOSING
    route = partition.routing_queue.queue_for("late")
    assert route.next_to_send() is None
    manager.poll([partition], 1.0)
    background.run()
    assert (route.next_to_send() is None) is refused
    assert committer.commits == []


def test_an_error_of_another_topic_ends_the_lease() -> None:
    partition = routing_partition(LEASE, Transaction(PRODUCER))
    queue_group(partition.routing_queue, 102, late=(101, 1))
    _, late = partition.senders()
    late.end_now(LeaseEndReason.REFUSED, "too old")
    assert (partition.end_reason, partition.end_message) == (LeaseEndReason.REFUSED, "too old")
    assert not late.can_send


# -- whatever happens ------------------------------------------------------------------------------


@dataclass
class FakeTarget:
    """Remote partitions of one producer in transactions of version 2."""

    committed: dict[TopicPartition, list[tuple[str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    open: dict[TopicPartition, list[tuple[str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    epoch: int = 4

    def append(self, remote: TopicPartition, source: str, batch: PendingBatch) -> int | None:
        """Append a batch once; return its base offset, or None if a sequence before it lacks."""
        header = read_header(batch.buffers[0])
        assert header.producer_epoch == self.epoch
        log = self.open[remote]
        offsets = [first + n for first, length in batch.spans for n in range(length)]
        if header.base_sequence > len(log):
            return None
        if header.base_sequence == len(log):
            log += [(source, offset) for offset in offsets]
        assert log[header.base_sequence :][: len(offsets)] == [(source, one) for one in offsets]
        return len(self.committed[remote]) + header.base_sequence

    def add_partitions_to_transaction(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        raise AssertionError("version 2 adds partitions by itself")

    def commit(self, entries: Mapping[TopicPartition, LedgerEntry]) -> ProducerIdAndEpoch:
        for remote, records in self.open.items():
            self.committed[remote] += records
        self.positions |= {source: entry.position for source, entry in entries.items()}
        return self.abort()

    def abort(self) -> ProducerIdAndEpoch:
        self.open.clear()
        self.epoch += 1
        return ProducerIdAndEpoch(7, self.epoch)


class Run:
    """Two partitions of a task whose records go to topics of their own and to common ones."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.target = FakeTarget()
        self.now = 1.0
        self.answers: deque[tuple[LeasedPartition, PendingBatch]] = deque()
        self.topics = {
            lease.source: [self.rng.choice([HOME, lease.target.topic, "late", "old"])
                           for _ in range(40)]
            for lease in (LEASE, OTHER)
        }  # fmt: skip
        self.start()

    def start(self) -> None:
        """Grant both leases at the committed positions, under a new producer epoch."""
        producer = replace(PRODUCER, identity=self.target.abort())
        self.background, self.transaction = FakeBackground(), Transaction(producer)
        self.manager = TransactionManager(
            self.background, self.transaction, self.target, self, lambda: self.now
        )
        self.answers.clear()
        self.partitions = [
            routing_partition(
                replace(lease, position=self.target.positions.get(lease.source, 0), expected=0),
                self.transaction,
            )
            for lease in (LEASE, OTHER)
        ]

    def count(self, partition: LeasedPartition, one: PendingBatch, runs: list[OffsetRun]) -> None:
        """Counts are no matter here."""

    def fetch(self, partition: RoutingPartition) -> None:
        queue = partition.routing_queue
        first, topics = queue.next_fetch_offset, self.topics[partition.source]
        end = min(first + self.rng.randint(1, 8), len(topics))
        if partition.is_ending or not queue.may_fetch_more or end == first:
            return
        for offset in range(first, end):
            queue.queue_for(topics[offset]).enqueue(make_batch(offset, 1))
        queue.skip_to(end)

    def send(self, sender: LeasedPartition) -> None:
        if sender.can_send and (batch := sender.queue.next_to_send()):
            self.answers.append((sender, batch))

    def answer(self, outcome: str) -> None:
        """Answer the oldest request: appended, appended with a lost answer, refused for now."""
        if not self.answers:
            return
        sender, batch = self.answers.popleft()
        queue: PartitionQueue = sender.queue
        at = None
        if outcome != "refused":
            at = self.target.append(sender.target, str(sender.source), batch)
        if at is None:
            assert outcome == "refused" or not queue.is_oldest_in_flight(batch), "a gap"
            queue.mark_not_appended(batch)
            queue.resend_in_flight()
        elif outcome == "appended" and queue.is_oldest_in_flight(batch):
            assert queue.accept_base_offset(batch, at)
            self.manager.count(sender, batch, queue.acknowledge(batch))
        else:
            queue.resend_in_flight()
        sender.on_answer()

    def step(self) -> None:
        partition = self.rng.choice(self.partitions)
        match self.rng.choice(["fetch", "send", "send", "answer", "answer", "poll", "end"]):
            case "fetch":
                self.fetch(partition)
            case "send":
                self.send(self.rng.choice(list(partition.senders())))
            case "answer":
                outcomes = ["appended", "appended", "appended", "lost", "refused"]
                self.answer(self.rng.choice(outcomes))
            case "poll":
                self.now += self.rng.choice([0.1, 0.2, 6.0])
                self.manager.poll(self.partitions, self.now)
                self.background.run()
            case "end" if self.rng.random() < 0.05:
                partition.end_now(LeaseEndReason.REFUSED, "too old")
        self.check()
        if self.transaction.failure or all(one.is_ending for one in self.partitions):
            self.start()

    def check(self) -> None:
        """What is committed of each source is exactly what lies before its position."""
        found: dict[str, list[int]] = defaultdict(list)
        for remote, records in self.target.committed.items():
            by_source: dict[str, list[int]] = defaultdict(list)
            for source, offset in records:
                assert self.topics[TopicPartition.parse(source)][offset] == remote.topic
                by_source[source].append(offset)
            for source, offsets in by_source.items():
                assert offsets == sorted(offsets), "order is kept"
                found[source] += offsets
        for partition in self.topics:
            position = self.target.positions.get(partition, 0)
            assert sorted(found[str(partition)]) == list(range(position))


@settings(max_examples=150)
@given(st.integers(0, 1 << 32))
def test_every_commit_has_the_records_before_its_positions_once_and_in_order(seed: int) -> None:
    run = Run(seed)
    for _ in range(400):
        run.step()


def test_such_runs_copy_everything() -> None:
    run = Run(3)
    for _ in range(20_000):
        run.step()
        if run.target.positions == dict.fromkeys(run.topics, 40):
            return
    pytest.fail(f"only {run.target.positions} of 40 are committed")
