"""When a transaction closes and what it commits; no failure makes a record count twice."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.pending_batch import PendingBatch
from sparkmirror.copy.task.produce.transaction_manager import RESOLVE_TIMEOUT_S, TransactionManager
from sparkmirror.copy.task.produce.transaction_state import Transaction, TransactionPhase
from sparkmirror.errors import ClusterTimeout, MirrorError, RequestRefused
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from tests.pure.copy.task.produce.test_transaction_state import (
    LEASE,
    PRODUCER,
    TARGET,
    acknowledge_at,
    send_next,
)
from tests.support.copy.pending_batches import make_batch, make_partition

T = TypeVar("T")
NEXT = ProducerIdAndEpoch(7, 5)


class FakeBackground:
    """Runs the work when the test calls `run`."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def run_in_executor(
        self,
        work: Callable[[], T],
        on_result: Callable[[T], None],
        on_error: Callable[[MirrorError], None],
    ) -> None:
        def step() -> None:
            try:
                result = work()
            except MirrorError as error:
                on_error(error)
            else:
                on_result(result)

        self._waiting.append(step)

    def run(self) -> int:
        """Run the waiting work; return how many calls there were."""
        done = 0
        while self._waiting:
            self._waiting.popleft()()
            done += 1
        return done


class FakeCommitter:
    """Ends transactions without a broker; raises `error` if it is set."""

    def __init__(self) -> None:
        self.commits: list[Mapping[TopicPartition, LedgerEntry]] = []
        self.aborts = 0
        self.error: MirrorError | None = None
        self.codes: dict[TopicPartition, ErrorCode] = {}

    def add_partitions_to_transaction(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        return {p: self.codes.get(p, ErrorCode.NONE) for p in partitions}

    def commit(self, entries: Mapping[TopicPartition, LedgerEntry]) -> ProducerIdAndEpoch:
        if self.error:
            raise self.error
        self.commits.append(entries)
        return NEXT

    def abort(self) -> ProducerIdAndEpoch:
        self.aborts += 1
        return NEXT


class Scenario:
    """One partition in transactions, with a fake background and a fake committer."""

    def __init__(self, version: int = 2) -> None:
        self.background, self.committer = FakeBackground(), FakeCommitter()
        self.counted: list[OffsetRun] = []
        self.transaction = Transaction(replace(PRODUCER, transaction_version=version))
        self.queue = PartitionQueue(LEASE, self.transaction)
        self.partition = make_partition(self.queue)
        self.now = 1.0
        self.manager = TransactionManager(
            self.background, self.transaction, self.committer, self, lambda: self.now
        )

    def count(self, partition: LeasedPartition, one: PendingBatch, runs: list[OffsetRun]) -> None:
        assert partition is self.partition
        assert not one.batch
        self.counted += runs

    def send(self, first: int, count: int = 1) -> PendingBatch:
        self.queue.enqueue(make_batch(first, count))
        return send_next(self.queue)

    def acknowledge(self, one: PendingBatch, at: int) -> None:
        self.manager.count(self.partition, one, acknowledge_at(self.queue, one, at))

    def poll(self, after_s: float = 0.0) -> None:
        self.now += after_s
        self.manager.poll([self.partition], self.now)


def test_acknowledged_batches_are_counted_at_the_commit() -> None:
    scenario = Scenario()
    scenario.acknowledge(scenario.send(100, 3), 50)
    scenario.poll()
    assert scenario.counted == []
    assert scenario.background.run() == 1
    assert scenario.counted == [OffsetRun(100, 50, 3)]
    (entries,) = scenario.committer.commits
    entry = entries[LEASE.source]
    assert entry.extension
    assert (entry.position, entry.extension.expected, entry.extension.records) == (103, 53, 3)
    assert entry.extension.is_transactional


def test_a_closing_transaction_waits_for_responses_and_sends_nothing_new() -> None:
    scenario = Scenario()
    one = scenario.send(100)
    scenario.poll()
    assert scenario.background.run() == 0
    scenario.queue.enqueue(make_batch(101, 1))
    assert scenario.queue.next_to_send() is None, "it belongs to the next transaction"
    scenario.acknowledge(one, 50)
    scenario.poll(after_s=0.1)
    assert scenario.background.run() == 1
    send_next(scenario.queue)


def test_commits_keep_the_interval_unless_a_lease_ends() -> None:
    scenario = Scenario()
    scenario.acknowledge(scenario.send(100), 50)
    scenario.poll()
    scenario.background.run()
    scenario.acknowledge(scenario.send(101), 51)
    scenario.poll(after_s=PRODUCER.commit_interval_s / 2)
    assert scenario.background.run() == 0
    assert scenario.manager.wait_s(scenario.now) == pytest.approx(PRODUCER.commit_interval_s / 2)
    scenario.poll(after_s=PRODUCER.commit_interval_s)
    assert scenario.background.run() == 1
    scenario.acknowledge(scenario.send(102), 52)
    scenario.partition.close()
    assert not scenario.manager.is_resolved(scenario.partition)
    scenario.poll()
    scenario.background.run()
    assert scenario.manager.is_resolved(scenario.partition)
    assert len(scenario.committer.commits) == 3


def test_without_copied_records_there_is_no_commit() -> None:
    scenario = Scenario()
    scenario.poll()
    assert scenario.background.run() == 0
    assert scenario.transaction.phase is TransactionPhase.OPEN


def test_a_batch_that_was_not_appended_does_not_delay_the_commit() -> None:
    scenario = Scenario()
    one = scenario.send(100)
    scenario.queue.mark_not_appended(one)
    scenario.queue.on_request_done()
    scenario.queue.resend_in_flight()
    scenario.poll()
    scenario.background.run()
    assert scenario.committer.commits == []
    assert scenario.committer.aborts == 1, "the transaction may have the partition"
    assert scenario.transaction.phase is TransactionPhase.OPEN
    assert send_next(scenario.queue) is one


@pytest.mark.parametrize("is_sending", [True, False], ids=["resend-is-possible", "lease-ended"])
def test_a_batch_with_unknown_outcome_fails_the_producer(is_sending: bool) -> None:
    scenario = Scenario()
    scenario.send(100)
    scenario.queue.on_request_done()
    scenario.queue.resend_in_flight()
    if not is_sending:
        scenario.partition.end_now(LeaseEndReason.REFUSED, "no")
    scenario.poll()
    assert (scenario.manager.failure is None) == is_sending
    scenario.poll(after_s=RESOLVE_TIMEOUT_S + 0.1)
    assert scenario.manager.failure
    assert scenario.committer.commits == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ClusterTimeout("target", "no answer"), LeaseEndReason.AMBIGUOUS),
        (RequestRefused("target", "fenced", code=90), LeaseEndReason.FENCED),
    ],
    ids=["unknown", "fenced"],
)
def test_after_a_failed_commit_nothing_is_counted(
    error: MirrorError, reason: LeaseEndReason
) -> None:
    scenario = Scenario()
    scenario.committer.error = error
    scenario.acknowledge(scenario.send(100), 50)
    scenario.poll()
    scenario.background.run()
    assert scenario.manager.failure
    assert scenario.manager.failure[0] is reason
    assert scenario.counted == []
    assert scenario.queue.durable_lease == LEASE
    assert scenario.manager.is_resolved(scenario.partition), (
        "the lease is returned as it was granted"
    )


def test_a_partition_that_cannot_be_added_is_left_out_for_a_second() -> None:
    scenario = Scenario(version=1)
    other = TopicPartition("primary.payments", 0)
    scenario.committer.codes = {
        other: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        TARGET: ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
    scenario.queue.enqueue(make_batch(100, 1))
    assert scenario.queue.next_to_send() is None
    scenario.transaction.partitions_to_add.add(other)
    scenario.poll()
    scenario.background.run()
    scenario.committer.codes = {}
    scenario.poll()
    scenario.background.run()
    assert scenario.transaction.partitions_to_add == {other}
    send_next(scenario.queue)


def test_a_fence_while_adding_partitions_fails_the_producer() -> None:
    scenario = Scenario(version=1)
    scenario.committer.codes = {TARGET: ErrorCode.PRODUCER_FENCED}
    scenario.transaction.partitions_to_add.add(TARGET)
    scenario.poll()
    scenario.background.run()
    assert scenario.manager.failure == (
        LeaseEndReason.FENCED,
        "another owner has taken over the transactional id",
    )


class Log:
    """A target partition and its entry in the offsets topic."""

    def __init__(self) -> None:
        self.committed: list[int] = []
        self.position = LEASE.position
        self._open: list[int] = []
        self._next = 0
        self._end = LEASE.expected
        self._bases: dict[int, int] = {}

    def append(self, one: PendingBatch) -> int | None:
        """Append or recognise a batch and return its offset; None for a wrong sequence."""
        sequence = read_header(one.buffers[0]).base_sequence
        if sequence in self._bases:
            return self._bases[sequence]
        if sequence != self._next:
            return None
        self._bases[sequence] = self._end
        self._open += [first + n for first, length in one.spans for n in range(length)]
        self._next += one.record_count
        self._end += one.record_count
        return self._bases[sequence]

    def end(self, position: int | None) -> None:
        """Commit up to a position, or abort."""
        if position is not None:
            self.committed += self._open
            self.position = position
        self._open, self._next, self._bases = [], 0, {}
        self._end += 1


class RandomFailures:
    """A partition and its log: responses get lost, leaders change, commits fail, tasks end."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.log, self.now = rng, Log(), 0.0
        self.in_transit: deque[PendingBatch] = deque()
        self.epoch = 0
        self._begin()

    def _begin(self) -> None:
        self.epoch += 1
        self.log.end(None)
        self.in_transit.clear()
        producer = replace(
            PRODUCER, identity=ProducerIdAndEpoch(7, self.epoch), commit_interval_s=0.0
        )
        self.transaction = Transaction(producer)
        lease = replace(LEASE, position=self.log.position)
        self.queue = PartitionQueue(lease, self.transaction)
        self.partition = make_partition(self.queue)
        self.background = FakeBackground()
        self.manager = TransactionManager(
            self.background, self.transaction, self, self, lambda: self.now
        )

    def count(self, *_: object) -> None:
        """The log has the counts."""

    def add_partitions_to_transaction(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        raise AssertionError(partitions)

    def commit(self, entries: Mapping[TopicPartition, LedgerEntry]) -> ProducerIdAndEpoch:
        lost = self.rng.random()
        if lost > 0.1:
            self.log.end(entries[LEASE.source].position)
        if lost < 0.2:
            raise ClusterTimeout("target", "the outcome of the commit is unknown")
        return ProducerIdAndEpoch(7, self.epoch)

    def abort(self) -> ProducerIdAndEpoch:
        self.log.end(None)
        return ProducerIdAndEpoch(7, self.epoch)

    def step(self) -> None:
        self.now += 0.1
        self.queue.enqueue(make_batch(self.queue.next_fetch_offset, self.rng.randint(1, 3)))
        while self.rng.random() < 0.7 and (one := self.queue.next_to_send()):
            self.in_transit.append(one)
        while self.in_transit and self.rng.random() < 0.7:
            self._answer(self.in_transit.popleft())
        self.manager.poll([self.partition], self.now)
        self.background.run()
        if self.manager.failure or self.rng.random() < 0.02:
            self._begin()

    def _answer(self, one: PendingBatch) -> None:
        chance = self.rng.random()
        if chance < 0.1:
            self.queue.resend_in_flight()  # not appended, but the task does not know
        elif chance < 0.2:
            self.log.append(one)
            self.queue.resend_in_flight()  # appended, but the task does not know
        elif chance < 0.3:
            self.queue.mark_not_appended(one)
            self.queue.resend_in_flight()  # too few replicas
        else:
            self._take(one, self.log.append(one))
        self.queue.on_request_done()

    def _take(self, one: PendingBatch, base: int | None) -> None:
        if base is None:
            self.queue.mark_not_appended(one)
            if self.queue.is_oldest_in_flight(one):
                self.transaction.fail(LeaseEndReason.AMBIGUOUS, "sequence")
            else:
                self.queue.resend_in_flight()
        elif self.queue.is_oldest_in_flight(one):
            assert self.queue.accept_base_offset(one, base)
            self.manager.count(self.partition, one, self.queue.acknowledge(one))


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_after_any_failures_every_record_is_committed_once(seed: int) -> None:
    run = RandomFailures(random.Random(seed))
    for _ in range(200):
        run.step()
    assert run.log.committed == list(range(LEASE.position, run.log.position))


def test_random_failures_let_some_records_through() -> None:
    """Otherwise the test above proves nothing."""
    runs = [RandomFailures(random.Random(seed)) for seed in range(5)]
    for run in runs:
        for _ in range(200):
            run.step()
    assert sum(len(run.log.committed) for run in runs) > 100
