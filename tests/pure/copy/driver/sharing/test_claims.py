"""Claims: of several conductors that continue one entry, one gets the partition."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.copy.lease import TRANSACTIONAL_IDENTITY, Lease, LeaseIdentity
from sparkmirror.copy.ledger import LedgerChange, LedgerEntry, decode_entry, encode_entry
from sparkmirror.errors import ClusterTimeout, ClusterUnavailable
from sparkmirror.model import TopicPartition
from tests.support.copy.scripted_clusters import InMemoryLedger

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
OTHER, OTHER_TARGET = TopicPartition("u", 0), TopicPartition("A.u", 0)
IDENTITY = LeaseIdentity(producer_id=9, producer_epoch=1, anchor=0)
NEW = LeaseIdentity(producer_id=10, producer_epoch=0, anchor=0)


class FailingLedger(InMemoryLedger):
    """A ledger that stores what it is given and then fails, or that cannot be read."""

    stores_and_fails = False
    cannot_be_read = False
    is_behind = False
    """Whether reads bring nothing, as those of a broker that no longer leads the partition."""

    def save(self, entries: Mapping[TopicPartition, LedgerEntry]) -> None:
        super().save(entries)
        if self.stores_and_fails:
            raise ClusterTimeout("A", "no answer in time")

    def changes(self) -> list[LedgerChange]:
        if self.cannot_be_read:
            raise ClusterUnavailable("A", "no leader")
        return [] if self.is_behind else super().changes()


class Worker:
    """The ledger cache of one conductor, and the partition as it tracks it."""

    def __init__(self, name: str, log: list[LedgerChange], *, task: int = 0) -> None:
        self.ledger = FailingLedger(log)
        self.cache = LedgerCache(self.ledger, threading.Lock(), conductor=name)
        self.cache.load()
        self.tracked = TrackedPartition(SOURCE, TARGET, task)

    def continue_entry(self, position: int = 100) -> None:
        """Take the present entry as resume point."""
        self.cache.reload()
        self.cache.continue_from([self.tracked])
        self.tracked.set_lease(
            Lease(source=SOURCE, target=TARGET, position=position, expected=50, identity=IDENTITY)
        )

    def claims(self) -> bool:
        return self.cache.claim([self.tracked]) == {self.tracked}

    def close(self) -> None:
        self.cache.save([self.tracked], is_open=False)


@pytest.fixture
def workers() -> tuple[Worker, Worker]:
    log: list[LedgerChange] = []
    return Worker("a", log), Worker("b", log)


def test_of_two_conductors_that_read_the_same_entry_the_first_one_wins(
    workers: tuple[Worker, Worker],
) -> None:
    first, second = workers
    first.continue_entry()
    second.continue_entry()
    assert first.claims()
    assert not second.claims()
    assert second.cache.is_lost(second.tracked)
    entry = second.cache.entries[SOURCE]
    assert entry.extension
    assert entry.extension.conductor == "a", "it continues with the entry of the winner"


def test_a_claim_that_is_not_read_back_is_not_won(workers: tuple[Worker, Worker]) -> None:
    """A broker that was the leader may not have it: what precedes the claim is unknown."""
    first, _ = workers
    first.continue_entry()
    first.ledger.is_behind = True
    assert not first.claims()
    first.ledger.is_behind = False
    first.continue_entry()
    assert first.claims()


def test_a_conductor_keeps_what_another_one_claims_in_vain(
    workers: tuple[Worker, Worker],
) -> None:
    first, second = workers
    first.continue_entry()
    second.continue_entry()
    second.cache.save([second.tracked], is_open=True)
    second.ledger.log.insert(0, second.ledger.log.pop())
    assert not first.claims(), "the other one wrote first"


def test_a_closed_entry_is_handed_over(workers: tuple[Worker, Worker]) -> None:
    first, second = workers
    first.continue_entry()
    assert first.claims()
    first.close()
    second.continue_entry()
    assert second.claims()


def test_a_former_owner_cannot_grant_again_from_its_memory(
    workers: tuple[Worker, Worker],
) -> None:
    """It was suspended after a clean end of its lease, and another conductor went on."""
    first, second = workers
    first.continue_entry()
    assert first.claims()
    first.close()
    second.continue_entry()
    assert second.claims()
    assert not first.claims()


def test_a_late_flush_of_a_former_owner_does_not_hide_the_owner(
    workers: tuple[Worker, Worker],
) -> None:
    first, second = workers
    first.continue_entry()
    assert first.claims()
    second.continue_entry()
    assert second.claims(), "behind a fence"
    first.cache.save([first.tracked], is_open=True)
    assert not first.claims(), "its own last record does not hide the other one before it"


def test_an_operator_who_changes_the_offset_ends_a_claim(workers: tuple[Worker, Worker]) -> None:
    first, _ = workers
    first.continue_entry()
    assert first.claims()
    first.close()
    first.ledger.log.append(LedgerChange(SOURCE, LedgerEntry(position=7)))
    assert not first.claims()
    assert first.cache.entries[SOURCE] == LedgerEntry(position=7)


def test_a_conductor_claims_its_own_partition_again(workers: tuple[Worker, Worker]) -> None:
    first, _ = workers
    first.continue_entry()
    for _ in range(3):
        assert first.claims()
        first.close()


def test_a_conductor_that_shares_nothing_reads_nothing() -> None:
    log: list[LedgerChange] = []
    alone, other = Worker("", log), Worker("b", log)
    other.continue_entry()
    assert other.claims()
    alone.continue_entry()
    assert alone.claims()
    written = log[-1].entry
    assert written
    assert "conductor" not in encode_entry(written)


def test_an_entry_names_conductor_and_task() -> None:
    log: list[LedgerChange] = []
    worker = Worker("a", log, task=3)
    worker.continue_entry()
    assert worker.claims()
    entry = log[-1].entry
    assert entry
    value = encode_entry(entry)
    assert (value["conductor"], value["task"]) == ("a", 3)
    assert decode_entry(value) == entry


def test_a_transactional_entry_is_written_under_the_task_that_guards_it() -> None:
    log: list[LedgerChange] = []
    former, owner = Worker("a", log, task=0), Worker("b", log, task=1)
    written: list[int] = []

    def write(task: int, entries: Mapping[TopicPartition, LedgerEntry]) -> None:
        written.append(task)
        former.ledger.save(entries)

    for worker in (former, owner):
        name = worker.cache.conductor
        worker.cache = LedgerCache(worker.ledger, threading.Lock(), write, name)
    for worker in (former, owner):
        worker.continue_entry()
        assert worker.tracked.lease
        worker.tracked.set_lease(replace(worker.tracked.lease, identity=TRANSACTIONAL_IDENTITY))
        assert worker.claims()
    assert written == [0, 0], "the second conductor must hold the ids of task 0"
    assert owner.cache.guarding_task(owner.tracked) == 1, "from now on its own task guards it"


def test_a_claim_that_holds_is_not_written_again(workers: tuple[Worker, Worker]) -> None:
    """The next task attempt, in the next epoch, gets the lease at once."""
    first, _ = workers
    first.continue_entry()
    assert first.claims()
    first.tracked.release(clean=True, now=0.0)
    assert first.claims()
    assert len(first.ledger.writes) == 1
    assert not first.tracked.is_dirty, "the entry says all that the lease says"
    first.tracked.advance_to(110, 60, 10)
    assert first.claims()
    assert len(first.ledger.writes) == 1
    assert first.tracked.is_dirty, "the next flush writes how far the last attempt came"


def test_a_claim_does_not_hold_against_the_entry_of_another_conductor(
    workers: tuple[Worker, Worker],
) -> None:
    first, second = workers
    first.continue_entry()
    assert first.claims()
    second.continue_entry()
    assert second.claims(), "behind a fence"
    assert not first.claims()
    assert len(first.ledger.writes) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"identity": replace(IDENTITY, producer_epoch=2)},
        {"position": 99},
        {"expected": 49},
        {"source_topic_id": "another"},
        {"target_topic_id": "another"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_lease_that_does_not_continue_the_claim_is_written(
    workers: tuple[Worker, Worker], changed: dict[str, Any]
) -> None:
    first, _ = workers
    first.continue_entry()
    assert first.claims()
    assert first.tracked.lease
    first.tracked.set_lease(replace(first.tracked.lease, **changed))
    assert first.claims()
    assert len(first.ledger.writes) == 2


def test_a_position_that_was_moved_is_written(workers: tuple[Worker, Worker]) -> None:
    first, _ = workers
    first.continue_entry()
    assert first.claims()
    first.tracked.seek(500)
    assert first.claims()
    assert len(first.ledger.writes) == 2


def test_after_a_write_that_failed_the_claim_is_written(workers: tuple[Worker, Worker]) -> None:
    """The closed entry may be stored: another conductor would continue it without a fence."""
    first, second = workers
    first.continue_entry()
    assert first.claims()
    first.tracked.release(clean=True, now=0.0)
    first.ledger.stores_and_fails = True
    with pytest.raises(ClusterTimeout):
        first.close()
    first.ledger.stores_and_fails = False
    assert first.claims()
    last = first.ledger.log[-1].entry
    assert last
    assert last.extension
    assert last.extension.is_open
    second.cache.reload()
    assert second.cache.entries[SOURCE] == last


@pytest.mark.parametrize("conductor", ["", "a"], ids=["alone", "shared"])
def test_a_claim_that_fails_leaves_its_partitions_dirty(conductor: str) -> None:
    """So that a stop before the next try writes their closed entries."""
    worker, other = Worker(conductor, []), TrackedPartition(OTHER, OTHER_TARGET, 0)
    worker.continue_entry()
    assert worker.claims()
    worker.tracked.release(clean=True, now=0.0)
    other.set_lease(Lease(source=OTHER, target=OTHER_TARGET, position=0, expected=0, identity=NEW))
    if conductor:
        worker.ledger.cannot_be_read = True
    else:
        worker.ledger.error = ClusterUnavailable("A", "no leader")
    with pytest.raises(ClusterUnavailable):
        worker.cache.claim([worker.tracked, other])
    assert worker.tracked.is_dirty
