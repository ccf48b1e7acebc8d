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

from sparkmirror.copy.course import Course
from sparkmirror.copy.ledger import Entry
from sparkmirror.copy.messages import How
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.partition import Partition
from sparkmirror.copy.sorting import Sorter
from sparkmirror.copy.transacting import SETTLED_WITHIN_S, Transacting
from sparkmirror.copy.transaction import Phase, Transaction
from sparkmirror.errors import ClusterTimeout, MirrorError, RequestRefused
from sparkmirror.mirror.runs import Run
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Code
from sparkmirror.wire.header import read_header
from sparkmirror.wire.producers import ProducerIdentity
from sparkmirror.wire.target import Target
from tests.pure.copy.test_transaction import LEASE, TARGET, TERM, landed, parcel, sent

T = TypeVar("T")
NEXT = ProducerIdentity(7, 5)


class Later:
    """A background that works when it is told to."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def in_background(
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
        self.commits: list[Mapping[TopicPartition, Entry]] = []
        self.aborts = 0
        self.error: MirrorError | None = None
        self.codes: dict[TopicPartition, Code] = {}

    def join(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Code]:
        return {p: self.codes.get(p, Code.NONE) for p in partitions}

    def commit(self, entries: Mapping[TopicPartition, Entry]) -> ProducerIdentity:
        if self.error:
            raise self.error
        self.commits.append(entries)
        return NEXT

    def abort(self) -> ProducerIdentity:
        self.aborts += 1
        return NEXT


class Scene:
    """One partition in transactions, with a background and a desk."""

    def __init__(self, version: int = 2) -> None:
        self.later, self.desk = Later(), Desk()
        self.counted: list[Run] = []
        self.transaction = Transaction(replace(TERM, version=version))
        self.partition = Partition(LEASE, self.transaction)
        self.course = Course(self.partition, Sorter(Target()))
        self.now = 1.0
        self.transacting = Transacting(
            self.later, self.transaction, self.desk, self._count, lambda: self.now
        )

    def _count(self, course: Course, one: Parcel, runs: list[Run]) -> None:
        assert course is self.course
        assert not one.batch
        self.counted += runs

    def send(self, first: int, count: int = 1) -> Parcel:
        self.partition.arrived(parcel(first, count))
        return sent(self.partition)

    def land(self, one: Parcel, at: int) -> None:
        self.transacting.landed(self.course, one, landed(self.partition, one, at))

    def pump(self, later_s: float = 0.0) -> None:
        self.now += later_s
        self.transacting.pump([self.course], self.now)


def test_what_landed_counts_when_it_is_committed() -> None:
    scene = Scene()
    scene.land(scene.send(100, 3), 50)
    scene.pump()
    assert scene.counted == []
    assert scene.later.work() == 1
    assert scene.counted == [Run(100, 50, 3)]
    (entries,) = scene.desk.commits
    entry = entries[LEASE.source]
    assert entry.ours
    assert (entry.position, entry.ours.expected, entry.ours.records) == (103, 53, 3)
    assert entry.ours.is_transactional


def test_a_transaction_waits_for_every_answer_but_not_for_news() -> None:
    scene = Scene()
    one = scene.send(100)
    scene.pump()
    assert scene.later.work() == 0
    scene.partition.arrived(parcel(101, 1))
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
    scene.pump(later_s=TERM.commit_every_s / 2)
    assert scene.later.work() == 0
    assert scene.transacting.wait_s(scene.now) == pytest.approx(TERM.commit_every_s / 2)
    scene.pump(later_s=TERM.commit_every_s)
    assert scene.later.work() == 1
    scene.land(scene.send(102), 52)
    scene.course.close()
    assert not scene.transacting.has_settled(scene.course)
    scene.pump()
    scene.later.work()
    assert scene.transacting.has_settled(scene.course)
    assert len(scene.desk.commits) == 3


def test_nothing_to_commit_is_not_committed() -> None:
    scene = Scene()
    scene.pump()
    assert scene.later.work() == 0
    assert scene.transaction.phase is Phase.OPEN


def test_what_is_certainly_not_on_the_target_does_not_keep_the_others_waiting() -> None:
    scene = Scene()
    one = scene.send(100)
    scene.partition.refused(one)
    scene.partition.answered()
    scene.partition.send_again()
    scene.pump()
    scene.later.work()
    assert scene.desk.commits == []
    assert scene.desk.aborts == 1, "the partition may have joined: the transaction must end"
    assert scene.transaction.phase is Phase.OPEN
    assert sent(scene.partition) is one


@pytest.mark.parametrize("is_sending", [True, False], ids=["in-time", "nobody-asks-again"])
def test_what_may_be_on_the_target_fails_the_term(is_sending: bool) -> None:
    scene = Scene()
    scene.send(100)
    scene.partition.answered()
    scene.partition.send_again()
    if not is_sending:
        scene.course.end_with(How.REFUSED, "no")
    scene.pump()
    assert (scene.transacting.failure is None) == is_sending
    scene.pump(later_s=SETTLED_WITHIN_S + 0.1)
    assert scene.transacting.failure
    assert scene.desk.commits == []


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (ClusterTimeout("target", "no answer"), How.AMBIGUOUS),
        (RequestRefused("target", "fenced", code=90), How.FENCED),
    ],
    ids=["unknown", "fenced"],
)
def test_a_commit_that_fails_counts_for_nothing(error: MirrorError, how: How) -> None:
    scene = Scene()
    scene.desk.error = error
    scene.land(scene.send(100), 50)
    scene.pump()
    scene.later.work()
    assert scene.transacting.failure
    assert scene.transacting.failure[0] is how
    assert scene.counted == []
    assert scene.partition.standing == LEASE
    assert scene.transacting.has_settled(scene.course), "it is given back, as it was granted"


def test_a_partition_that_cannot_be_added_is_left_out_for_a_while() -> None:
    scene = Scene(version=1)
    other = TopicPartition("primary.payments", 0)
    scene.desk.codes = {
        other: Code.UNKNOWN_TOPIC_OR_PARTITION,
        TARGET: Code.OPERATION_NOT_ATTEMPTED,
    }
    scene.partition.arrived(parcel(100, 1))
    assert scene.partition.next_to_send() is None
    scene.transaction.wanted.add(other)
    scene.pump()
    scene.later.work()
    scene.desk.codes = {}
    scene.pump()
    scene.later.work()
    assert scene.transaction.wanted == {other}
    sent(scene.partition)


def test_a_fenced_join_fails_the_term() -> None:
    scene = Scene(version=1)
    scene.desk.codes = {TARGET: Code.PRODUCER_FENCED}
    scene.transaction.wanted.add(TARGET)
    scene.pump()
    scene.later.work()
    assert scene.transacting.failure == (
        How.FENCED,
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

    def append(self, one: Parcel) -> int | None:
        """Take a batch, recognise it, or refuse its sequence (None)."""
        sequence = read_header(one.buffers[0]).base_sequence
        if sequence in self._bases:
            return self._bases[sequence]
        if sequence != self._next:
            return None
        self._bases[sequence] = self._end
        self._open += [first + n for first, length in one.spans for n in range(length)]
        self._next += one.count
        self._end += one.count
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
        self.flying: deque[Parcel] = deque()
        self.epoch = 0
        self._begin()

    def _begin(self) -> None:
        self.epoch += 1
        self.log.end(None)
        self.flying.clear()
        term = replace(TERM, identity=ProducerIdentity(7, self.epoch), commit_every_s=0.0)
        self.transaction = Transaction(term)
        lease = replace(LEASE, position=self.log.position)
        self.partition = Partition(lease, self.transaction)
        self.course = Course(self.partition, Sorter(Target()))
        self.later = Later()
        self.transacting = Transacting(
            self.later, self.transaction, self, lambda *_: None, lambda: self.now
        )

    def join(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Code]:
        raise AssertionError(partitions)

    def commit(self, entries: Mapping[TopicPartition, Entry]) -> ProducerIdentity:
        lost = self.rng.random()
        if lost > 0.1:
            self.log.end(entries[LEASE.source].position)
        if lost < 0.2:
            raise ClusterTimeout("target", "nobody knows whether it was committed")
        return ProducerIdentity(7, self.epoch)

    def abort(self) -> ProducerIdentity:
        self.log.end(None)
        return ProducerIdentity(7, self.epoch)

    def step(self) -> None:
        self.now += 0.1
        self.partition.arrived(parcel(self.partition.fetched, self.rng.randint(1, 3)))
        while self.rng.random() < 0.7 and (one := self.partition.next_to_send()):
            self.flying.append(one)
        while self.flying and self.rng.random() < 0.7:
            self._answer(self.flying.popleft())
        self.transacting.pump([self.course], self.now)
        self.later.work()
        if self.transacting.failure or self.rng.random() < 0.02:
            self._begin()

    def _answer(self, one: Parcel) -> None:
        fate = self.rng.random()
        if fate < 0.1:
            self.partition.send_again()  # never arrived, but who knows
        elif fate < 0.2:
            self.log.append(one)
            self.partition.send_again()  # arrived, but who knows
        elif fate < 0.3:
            self.partition.refused(one)
            self.partition.send_again()  # too few replicas
        else:
            self._take(one, self.log.append(one))
        self.partition.answered()

    def _take(self, one: Parcel, base: int | None) -> None:
        if base is None:
            self.partition.refused(one)
            if self.partition.is_oldest(one):
                self.transaction.fail(How.AMBIGUOUS, "sequence")
            else:
                self.partition.send_again()
        elif self.partition.is_oldest(one):
            assert self.partition.lands_at(one, base)
            self.transacting.landed(self.course, one, self.partition.acknowledged(one))


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
