"""Transactional takeover: fenced tasks, committed offsets, hanging transactions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pytest

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.fencing.hanging_transactions import (
    HangingSearch,
    search_producer_states,
)
from sparkmirror.copy.driver.fencing.takeover_decisions import MAX_SINGLE_EVENTS
from sparkmirror.copy.driver.fencing.transactional_id_fencing import TransactionalIdFencing
from sparkmirror.copy.driver.fencing.transactional_takeover import (
    TransactionalTakeover,
    lease_at_committed,
)
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.monitoring.event_log import EventLog
from sparkmirror.copy.driver.sharing.worker_group_membership import GroupMembership
from sparkmirror.copy.driver.task_attempts import TaskAttempt
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.lease import TRANSACTIONAL_IDENTITY, Lease, LeaseIdentity
from sparkmirror.copy.ledger import LedgerChange, LedgerEntry, LedgerExtension
from sparkmirror.copy.transactional_producer_config import TransactionalProducer
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.leader_calls import ApiResult
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch, ProducerState
from tests.support.copy.scripted_clusters import InMemoryLedger, ScriptedClusters, copy_job

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def lease(partition: TopicPartition = P0) -> Lease:
    return Lease(
        source=partition,
        target=partition._replace(topic="A.t"),
        position=100,
        expected=50,
        identity=TRANSACTIONAL_IDENTITY,
        records=40,
    )


def committed(position: int, expected: int) -> LedgerEntry:
    extension = LedgerExtension(
        expected=expected,
        identity=TRANSACTIONAL_IDENTITY,
        is_open=False,
        records=position,
        source_epoch=6,
    )
    return LedgerEntry(position=position, extension=extension)


@pytest.mark.parametrize(
    ("entry", "position", "expected", "records", "epoch"),
    [
        (None, 100, 50, 40, -1),
        (LedgerEntry(position=70), 70, 50, 40, -1),
        (committed(120, 75), 120, 75, 120, 6),
        (committed(90, 45), 90, 45, 90, 6),
    ],
    ids=["nothing-committed", "offset-only", "more-than-reported", "less-than-granted"],
)
def test_copying_resumes_at_the_committed_entry(
    entry: LedgerEntry | None, position: int, expected: int, records: int, epoch: int
) -> None:
    found = lease_at_committed(lease(), entry)
    assert (found.position, found.expected, found.records) == (position, expected, records)
    assert found.source_epoch == epoch
    assert found.is_transactional


class ScriptedIds(TransactionalIdFencing):
    """Fences at once, and knows which remote partitions have no hanging transaction."""

    def __init__(self) -> None:
        super().__init__(ScriptedClusters.scripted().target, copy_job((P0,), (P1,)))
        self.fenced: list[int] = []
        self.on_fence: Callable[[], None] = lambda: None
        self.clear = True
        self.is_backing_off = False

    def fence(self, task: int) -> bool:
        self.fenced.append(task)
        return True

    def fence_tasks(self, tasks: Iterable[int]) -> None:
        for task in sorted(tasks):
            self.on_fence()
            self.fenced.append(task)
            self._conductor_ids[task] = ProducerIdAndEpoch(7, 1)

    def fenced_since(self, task: int, moment: float) -> bool:
        return task in self.fenced

    def acquire(self, task: int) -> TransactionalProducer | None:
        if self.is_backing_off:
            return None
        return self._make_producer(f"g-c-{task}", ProducerIdAndEpoch(7, 1))

    def end_hanging_transactions(
        self, committed: Mapping[TopicPartition, int]
    ) -> frozenset[TopicPartition]:
        return frozenset(committed) if self.clear else frozenset()


class Scene:
    """Two partitions of two tasks; the ledger holds an entry for the first."""

    def __init__(self) -> None:
        self.ids, self.events, self.lock = ScriptedIds(), EventLog(), threading.Lock()
        ledger = InMemoryLedger()
        ledger.entries = {P0: committed(120, 75)}
        self.clusters = ScriptedClusters.scripted()
        self.clusters.target_end = 75
        self.takeover = TransactionalTakeover(
            clusters=self.clusters,
            transactional_ids=self.ids,
            ledger_cache=LedgerCache(ledger, self.lock),
            publish=self.events.publish,
            lock=self.lock,
        )
        self.tracked = [
            TrackedPartition(partition, partition._replace(topic="A.t"), task)
            for task, partition in enumerate((P0, P1))
        ]
        for tracked in self.tracked:
            tracked.set_lease(lease(tracked.source))

    def grant(self, number: int, task: int) -> Hello:
        hello = Hello(task=task, attempt=0, host="h", pid=1)
        self.tracked[number].grant_to(hello)
        return hello


def test_a_doubtful_partition_resumes_at_what_its_fenced_task_committed() -> None:
    scene = Scene()
    scene.grant(0, task=0)
    scene.tracked[0].release(clean=False, now=5.0)
    scene.takeover.resolve(scene.tracked)
    assert scene.ids.fenced == [0]
    assert scene.tracked[0].state is LeaseState.WAITING
    assert scene.tracked[0].lease
    assert scene.tracked[0].lease.position == 120
    assert [event.kind for event in scene.events.latest()] == ["takeover"]


@pytest.mark.parametrize(
    ("count", "events"),
    [(MAX_SINGLE_EVENTS, MAX_SINGLE_EVENTS), (MAX_SINGLE_EVENTS + 1, 1)],
    ids=["few", "many"],
)
def test_many_takeovers_are_one_event(count: int, events: int) -> None:
    scene = Scene()
    scene.tracked = [
        TrackedPartition(P0._replace(partition=number), TopicPartition("A.t", number), 0)
        for number in range(count)
    ]
    for number, tracked in enumerate(scene.tracked):
        tracked.set_lease(lease(tracked.source))
        scene.grant(number, task=0)
    for tracked in scene.tracked:
        tracked.release(clean=False, now=5.0)
    scene.takeover.resolve(scene.tracked)
    assert {tracked.state for tracked in scene.tracked} == {LeaseState.WAITING}
    assert [event.kind for event in scene.events.latest()] == ["takeover"] * events


def test_a_task_is_not_fenced_while_it_holds_another_lease() -> None:
    scene = Scene()
    scene.grant(0, task=0)
    scene.grant(1, task=0)
    scene.tracked[0].release(clean=False, now=5.0)
    scene.takeover.resolve(scene.tracked)
    assert scene.ids.fenced == []
    assert scene.tracked[0].state is LeaseState.DOUBTFUL
    scene.tracked[1].release(clean=False, now=6.0)
    scene.takeover.resolve(scene.tracked)
    assert scene.ids.fenced == [0]


def grantable(scene: Scene, attempt: TaskAttempt) -> list[TrackedPartition]:
    waiting = [one for one in scene.tracked if one.state is LeaseState.WAITING]
    return scene.takeover.grantable(attempt, waiting, scene.tracked, 10.0)


def attempt_of(task: int) -> TaskAttempt:
    return TaskAttempt(Hello(task=task, attempt=0, host="h", pid=1), lambda _: None, 0.0)


def test_an_attempt_gets_a_producer_with_its_first_lease() -> None:
    scene, attempt = Scene(), attempt_of(0)
    assert grantable(scene, attempt) == scene.tracked
    assert attempt.transactional_producer
    assert attempt.transactional_producer.transactional_id == "g-c-0"


def test_an_attempt_in_backoff_gets_nothing() -> None:
    scene, attempt = Scene(), attempt_of(0)
    scene.ids.is_backing_off = True
    assert grantable(scene, attempt) == []


def test_an_attempt_that_failed_gets_a_producer_when_it_owns_no_lease() -> None:
    scene, attempt = Scene(), attempt_of(0)
    assert scene.grant(0, task=0) == attempt.hello
    assert grantable(scene, attempt) == []
    scene.tracked[0].release(clean=True, now=5.0)
    assert grantable(scene, attempt) == scene.tracked


def test_a_partition_with_a_hanging_transaction_is_held() -> None:
    scene, attempt = Scene(), attempt_of(0)
    scene.ids.clear = False
    assert grantable(scene, attempt) == []
    assert {one.state for one in scene.tracked} == {LeaseState.HELD}
    assert scene.tracked[0].reason == "target: A.t-0 has no leader, or does not exist"


def test_a_truncated_target_is_reported_and_appended_to() -> None:
    scene = Scene()
    scene.clusters.target_end = 30
    assert grantable(scene, attempt_of(0)) == scene.tracked
    assert [event.kind for event in scene.events.latest()] == ["remote-truncated"] * 2
    assert [one.lease.expected for one in scene.tracked if one.lease] == [30, 30]


def producer(producer_id: int, start: int) -> ProducerState:
    return ProducerState(producer_id, 1, 5, 3, start)


def test_an_open_transaction_of_a_known_producer_hangs() -> None:
    described = {
        P0: ApiResult(ErrorCode.NONE, {7: producer(7, 40), 8: producer(8, 41), 9: producer(9, -1)}),
        P1: ApiResult[dict[int, ProducerState]](ErrorCode.NOT_LEADER_OR_FOLLOWER, None),
    }
    found = search_producer_states(described, {7, 9})
    assert isinstance(found, HangingSearch)
    assert found.searched == {P0}
    assert found.hanging == ((P0, 7, 40),)


@pytest.mark.parametrize(("end", "verdict"), [(41, True), (40, False), (-1, False)])
def test_a_hanging_transaction_was_committed_if_the_committed_end_covers_it(
    end: int, verdict: bool
) -> None:
    found = search_producer_states({P0: ApiResult(ErrorCode.NONE, {7: producer(7, 40)})}, {7})
    assert found.hanging[0].was_committed({P0: end}) is verdict


class SharedScene:
    """A conductor without transactions, and the ledger of another worker that copies in them."""

    def __init__(self) -> None:
        log: list[LedgerChange] = []
        self.ids, self.other_ledger, lock = ScriptedIds(), InMemoryLedger(log), threading.Lock()
        self.cache = LedgerCache(InMemoryLedger(log), lock, conductor="this")
        self.cache.load()
        self.takeover = TransactionalTakeover(
            clusters=ScriptedClusters.scripted(),
            transactional_ids=self.ids,
            ledger_cache=self.cache,
            publish=EventLog().publish,
            lock=lock,
            membership=GroupMembership(is_required=True),
        )

    def commit_elsewhere(self, position: int, task: int) -> None:
        """Store what a task of another worker commits."""
        entry = committed(position, expected=75)
        assert entry.extension
        extension = replace(entry.extension, conductor="other", task=task)
        self.other_ledger.save({P0: replace(entry, extension=extension)})

    def copy_without_transactions(self, tracked: TrackedPartition) -> None:
        """Take a partition as its resume point says."""
        identity = LeaseIdentity(producer_id=9, producer_epoch=0, anchor=50)
        self.cache.continue_from([tracked])
        tracked.set_lease(replace(lease(tracked.source), identity=identity))
        assert self.cache.claim([tracked]) == {tracked}


def test_a_task_that_has_copied_in_transactions_again_is_fenced_again() -> None:
    """Another worker had the task, and the partition, between two rounds of this one."""
    scene, tracked = SharedScene(), TrackedPartition(P0, P0._replace(topic="A.t"), 1)
    scene.commit_elsewhere(120, task=3)
    for _ in range(3):
        scene.takeover.fence_former_owners([tracked])
        assert scene.ids.fenced == [3], "once, however long the partition waits"
    scene.copy_without_transactions(tracked)
    scene.takeover.fence_former_owners([tracked])
    assert scene.ids.fenced == [3]
    scene.commit_elsewhere(150, task=3)
    tracked.give_up(0)
    for _ in range(3):
        scene.takeover.fence_former_owners([tracked])
        assert scene.ids.fenced == [3, 3]
    assert scene.cache.entries[P0].position == 150


def test_what_former_owners_commit_until_their_fence_is_read() -> None:
    scene, tracked = SharedScene(), TrackedPartition(P0, P0._replace(topic="A.t"), 1)
    positions = [140, 130]

    def commit() -> None:
        if positions:
            scene.commit_elsewhere(positions.pop(), task=4)

    scene.ids.on_fence = commit
    scene.commit_elsewhere(120, task=3)
    scene.takeover.fence_former_owners([tracked])
    assert scene.ids.fenced == [3, 4, 4]
    assert scene.cache.entries[P0].position == 140
