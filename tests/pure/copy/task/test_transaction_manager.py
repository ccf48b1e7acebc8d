"""When a transaction closes, what it commits, and that whatever happens nothing counts twice."""

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
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.partition_queue import PartitionQueue
from sparkmirror.copy.task.pending_batch import PendingBatch
from sparkmirror.copy.task.transaction import Transaction, TransactionPhase
from sparkmirror.copy.task.transaction_manager import RESOLVE_TIMEOUT_S, TransactionManager
from sparkmirror.errors import ClusterTimeout, MirrorError, RequestRefused
from sparkmirror.mirror.offsets.run_map import OffsetRun
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch
from tests.pure.copy.task.test_transaction import LEASE, TARGET, TERM, landed, parcel, sent

T = TypeVar("T")
NEXT = ProducerIdAndEpoch(7, 5)


class Later:
    """A background that works when it is told to."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def run_in_executor(
        self,
        work: Callable[[], T],
        then: Callable[[T], None],
        failed: Callable[[MirrorError], None],
    ) -> None:
        def step() -> None:
            try:
                outcome = work()
            except MirrorError as error:
                failed(error)
            else:
                then(outcome)

        self._waiting.append(step)

    def work(self) -> int:
        """Do what waits; say how much it was."""
        done = 0
        while self._waiting:
            self._waiting.popleft()()
            done += 1
        return done


class Desk:
    """Ends transactions without a broker; what is in `error` is raised instead."""

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


class Scene:
    """One partition in transactions, with a background and a desk."""

    def __init__(self, version: int = 2) -> None:
        self.later, self.desk = Later(), Desk()
        self.counted: list[OffsetRun] = []
        self.transaction = Transaction(replace(TERM, transaction_version=version))
        self.partition = PartitionQueue(LEASE, self.transaction)
        self.course = LeasedPartition(self.partition, BatchConverter(TargetLimits()))
        self.now = 1.0
        self.transacting = TransactionManager(
            self.later, self.transaction, self.desk, self, lambda: self.now
        )

    def count(self, course: LeasedPartition, one: PendingBatch, runs: list[OffsetRun]) -> None:
        assert course is self.course
        assert not one.batch
        self.counted += runs

    def send(self, first: int, count: int = 1) -> PendingBatch:
        self.partition.enqueue(parcel(first, count))
        return sent(self.partition)

    def land(self, one: PendingBatch, at: int) -> None:
        self.transacting.count(self.course, one, landed(self.partition, one, at))

    def pump(self, later_s: float = 0.0) -> None:
        self.now += later_s
        self.transacting.poll([self.course], self.now)


def test_what_landed_counts_when_it_is_committed() -> None:
    scene = Scene()
    scene.land(scene.send(100, 3), 50)
    scene.pump()
    assert scene.counted == []
    assert scene.later.work() == 1
    assert scene.counted == [OffsetRun(100, 50, 3)]
    (entries,) = scene.desk.commits
    entry = entries[LEASE.source]
    assert entry.extension
    assert (entry.position, entry.extension.expected, entry.extension.records) == (103, 53, 3)
    assert entry.extension.is_transactional


def test_a_transaction_waits_for_every_answer_but_not_for_news() -> None:
    scene = Scene()
    one = scene.send(100)
    scene.pump()
    assert scene.later.work() == 0
    scene.partition.enqueue(parcel(101, 1))
    assert scene.partition.next_to_send() is None, "that is for the next one"
    scene.land(one, 50)
    scene.pump(later_s=0.1)
    assert scene.later.work() == 1
    sent(scene.partition)


def test_commits_are_so_long_apart_unless_a_partition_leaves() -> None:
    scene = Scene()
    scene.land(scene.send(100), 50)
    scene.pump()
    scene.later.work()
    scene.land(scene.send(101), 51)
    scene.pump(later_s=TERM.commit_interval_s / 2)
    assert scene.later.work() == 0
    assert scene.transacting.wait_s(scene.now) == pytest.approx(TERM.commit_interval_s / 2)
    scene.pump(later_s=TERM.commit_interval_s)
    assert scene.later.work() == 1
    scene.land(scene.send(102), 52)
    scene.course.close()
    assert not scene.transacting.is_resolved(scene.course)
    scene.pump()
    scene.later.work()
    assert scene.transacting.is_resolved(scene.course)
    assert len(scene.desk.commits) == 3


def test_nothing_to_commit_is_not_committed() -> None:
    scene = Scene()
    scene.pump()
    assert scene.later.work() == 0
    assert scene.transaction.phase is TransactionPhase.OPEN


def test_what_is_certainly_not_on_the_target_does_not_keep_the_others_waiting() -> None:
    scene = Scene()
    one = scene.send(100)
    scene.partition.mark_not_appended(one)
    scene.partition.on_request_done()
    scene.partition.resend_in_flight()
    scene.pump()
    scene.later.work()
    assert scene.desk.commits == []
    assert scene.desk.aborts == 1, "the partition may have joined: the transaction must end"
    assert scene.transaction.phase is TransactionPhase.OPEN
    assert sent(scene.partition) is one


@pytest.mark.parametrize("is_sending", [True, False], ids=["in-time", "nobody-asks-again"])
def test_what_may_be_on_the_target_fails_the_term(is_sending: bool) -> None:
    scene = Scene()
    scene.send(100)
    scene.partition.on_request_done()
    scene.partition.resend_in_flight()
    if not is_sending:
        scene.course.end_now(LeaseEndReason.REFUSED, "no")
    scene.pump()
    assert (scene.transacting.failure is None) == is_sending
    scene.pump(later_s=RESOLVE_TIMEOUT_S + 0.1)
    assert scene.transacting.failure
    assert scene.desk.commits == []


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (ClusterTimeout("target", "no answer"), LeaseEndReason.AMBIGUOUS),
        (RequestRefused("target", "fenced", code=90), LeaseEndReason.FENCED),
    ],
    ids=["unknown", "fenced"],
)
def test_a_commit_that_fails_counts_for_nothing(error: MirrorError, how: LeaseEndReason) -> None:
    scene = Scene()
    scene.desk.error = error
    scene.land(scene.send(100), 50)
    scene.pump()
    scene.later.work()
    assert scene.transacting.failure
    assert scene.transacting.failure[0] is how
    assert scene.counted == []
    assert scene.partition.durable_lease == LEASE
    assert scene.transacting.is_resolved(scene.course), "it is given back, as it was granted"


def test_a_partition_that_cannot_be_added_is_left_out_for_a_while() -> None:
    scene = Scene(version=1)
    other = TopicPartition("primary.payments", 0)
    scene.desk.codes = {
        other: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        TARGET: ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
    scene.partition.enqueue(parcel(100, 1))
    assert scene.partition.next_to_send() is None
    scene.transaction.partitions_to_add.add(other)
    scene.pump()
    scene.later.work()
    scene.desk.codes = {}
    scene.pump()
    scene.later.work()
    assert scene.transaction.partitions_to_add == {other}
    sent(scene.partition)


def test_a_fenced_join_fails_the_term() -> None:
    scene = Scene(version=1)
    scene.desk.codes = {TARGET: ErrorCode.PRODUCER_FENCED}
    scene.transaction.partitions_to_add.add(TARGET)
    scene.pump()
    scene.later.work()
    assert scene.transacting.failure == (
        LeaseEndReason.FENCED,
        "another owner has taken over the transactional id",
    )


class Log:
    """A target partition with its offsets topic: what is open, what counts, where it stands."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.position = LEASE.position
        self._open: list[int] = []
        self._next = 0
        self._end = LEASE.expected
        self._bases: dict[int, int] = {}

    def append(self, one: PendingBatch) -> int | None:
        """Take a batch, recognise it, or refuse its sequence (None)."""
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
            self.counts += self._open
            self.position = position
        self._open, self._next, self._bases = [], 0, {}
        self._end += 1


class Drama:
    """A partition, its log and chance: answers get lost, leaders move, commits fail, tasks die."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.log, self.now = rng, Log(), 0.0
        self.flying: deque[PendingBatch] = deque()
        self.epoch = 0
        self._begin()

    def _begin(self) -> None:
        self.epoch += 1
        self.log.end(None)
        self.flying.clear()
        term = replace(TERM, identity=ProducerIdAndEpoch(7, self.epoch), commit_interval_s=0.0)
        self.transaction = Transaction(term)
        lease = replace(LEASE, position=self.log.position)
        self.partition = PartitionQueue(lease, self.transaction)
        self.course = LeasedPartition(self.partition, BatchConverter(TargetLimits()))
        self.later = Later()
        self.transacting = TransactionManager(
            self.later, self.transaction, self, self, lambda: self.now
        )

    def count(self, *_: object) -> None:
        """What is counted is in the log."""

    def add_partitions_to_transaction(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        raise AssertionError(partitions)

    def commit(self, entries: Mapping[TopicPartition, LedgerEntry]) -> ProducerIdAndEpoch:
        lost = self.rng.random()
        if lost > 0.1:
            self.log.end(entries[LEASE.source].position)
        if lost < 0.2:
            raise ClusterTimeout("target", "nobody knows whether it was committed")
        return ProducerIdAndEpoch(7, self.epoch)

    def abort(self) -> ProducerIdAndEpoch:
        self.log.end(None)
        return ProducerIdAndEpoch(7, self.epoch)

    def step(self) -> None:
        self.now += 0.1
        self.partition.enqueue(parcel(self.partition.next_fetch_offset, self.rng.randint(1, 3)))
        while self.rng.random() < 0.7 and (one := self.partition.next_to_send()):
            self.flying.append(one)
        while self.flying and self.rng.random() < 0.7:
            self._answer(self.flying.popleft())
        self.transacting.poll([self.course], self.now)
        self.later.work()
        if self.transacting.failure or self.rng.random() < 0.02:
            self._begin()

    def _answer(self, one: PendingBatch) -> None:
        fate = self.rng.random()
        if fate < 0.1:
            self.partition.resend_in_flight()  # never arrived, but who knows
        elif fate < 0.2:
            self.log.append(one)
            self.partition.resend_in_flight()  # arrived, but who knows
        elif fate < 0.3:
            self.partition.mark_not_appended(one)
            self.partition.resend_in_flight()  # too few replicas
        else:
            self._take(one, self.log.append(one))
        self.partition.on_request_done()

    def _take(self, one: PendingBatch, base: int | None) -> None:
        if base is None:
            self.partition.mark_not_appended(one)
            if self.partition.is_oldest_in_flight(one):
                self.transaction.fail(LeaseEndReason.AMBIGUOUS, "sequence")
            else:
                self.partition.resend_in_flight()
        elif self.partition.is_oldest_in_flight(one):
            assert self.partition.accept_base_offset(one, base)
            self.transacting.count(self.course, one, self.partition.acknowledge(one))


@given(st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_whatever_happens_every_record_counts_once(seed: int) -> None:
    drama = Drama(random.Random(seed))
    for _ in range(200):
        drama.step()
    assert drama.log.counts == list(range(LEASE.position, drama.log.position))


def test_some_of_those_stories_get_somewhere() -> None:
    """Or the one above would show nothing. Now and then a story is all misfortune."""
    dramas = [Drama(random.Random(seed)) for seed in range(5)]
    for drama in dramas:
        for _ in range(200):
            drama.step()
    assert sum(len(drama.log.counts) for drama in dramas) > 100
