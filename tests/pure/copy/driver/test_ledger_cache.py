"""The ledger in memory: which entries are written, open or closed, and when they stay dirty."""

from __future__ import annotations

import threading

import pytest

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.ledger_cache import LedgerCache
from sparkmirror.copy.driver.tracked_partition import LeaseState, TrackedPartition
from sparkmirror.copy.lease import TRANSACTIONAL_IDENTITY, Lease, LeaseIdentity
from sparkmirror.copy.ledger import LedgerEntry, entry_for_lease
from sparkmirror.errors import ClusterUnavailable
from sparkmirror.model import TopicPartition
from tests.support.copy.scripted_clusters import InMemoryLedger

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
IDENTITY = LeaseIdentity(producer_id=7, producer_epoch=1, anchor=0)


def tracked_partition(
    state: LeaseState = LeaseState.WAITING, identity: LeaseIdentity = IDENTITY
) -> TrackedPartition:
    tracked = TrackedPartition(SOURCE, TARGET, 0)
    tracked.set_lease(
        Lease(source=SOURCE, target=TARGET, position=100, expected=50, identity=identity)
    )
    if state is LeaseState.LEASED:
        tracked.grant_to(Hello(task=0, attempt=0, host="h", pid=1))
    tracked.state = state
    return tracked


def ledger_cache() -> tuple[LedgerCache, InMemoryLedger]:
    ledger = InMemoryLedger()
    return LedgerCache(ledger, threading.Lock()), ledger


@pytest.mark.parametrize(
    ("state", "is_open"),
    [
        (LeaseState.LEASED, True),
        (LeaseState.WAITING, False),
        (LeaseState.DOUBTFUL, None),
        (LeaseState.HELD, None),
    ],
)
def test_a_flush_writes_leased_entries_open_and_waiting_ones_closed(
    state: LeaseState, is_open: bool | None
) -> None:
    cache, ledger = ledger_cache()
    tracked = tracked_partition(state)
    cache.flush([tracked])
    written = [one.extension.is_open for one in ledger.entries.values() if one.extension]
    assert written == ([] if is_open is None else [is_open])
    assert tracked.is_dirty == (is_open is None)


def test_a_flush_leaves_out_transactional_clean_and_unresolved_partitions() -> None:
    cache, ledger = ledger_cache()
    clean, unresolved = tracked_partition(), tracked_partition()
    clean.is_dirty, unresolved.needs_resume_point = False, True
    transactional = tracked_partition(identity=TRANSACTIONAL_IDENTITY)
    cache.flush([clean, unresolved, transactional])
    assert ledger.writes == []


def test_after_an_error_a_partition_stays_dirty() -> None:
    cache, ledger = ledger_cache()
    tracked, ledger.error = tracked_partition(), ClusterUnavailable("A", "down")
    with pytest.raises(ClusterUnavailable):
        cache.flush([tracked])
    assert tracked.is_dirty
    assert cache.entries == {}


def test_what_moves_while_it_is_written_stays_dirty() -> None:
    tracked = tracked_partition()

    def write(_task: int, _entries: object) -> None:
        tracked.advance_to(110, 60, 10)

    cache = LedgerCache(InMemoryLedger(), threading.Lock(), write)
    cache.flush([tracked])
    assert tracked.is_dirty
    assert cache.entries[SOURCE].position == 100


def test_an_entry_that_the_task_committed_itself_is_not_written_again() -> None:
    cache, ledger = ledger_cache()
    tracked = tracked_partition(identity=TRANSACTIONAL_IDENTITY)
    assert tracked.lease
    cache.entries[SOURCE] = entry_for_lease(tracked.lease, is_open=False)
    cache.save([tracked], is_open=True)
    assert ledger.writes == []
    tracked.advance_to(110, 60, 10)
    cache.save([tracked], is_open=True)
    assert len(ledger.writes) == 1


@pytest.mark.parametrize(
    ("entry", "ends"),
    [
        (None, {TARGET: -1}),
        (LedgerEntry(position=100), {}),
        ("own", {TARGET: 50}),
    ],
    ids=["no-entry", "offset-only", "with-a-target-offset"],
)
def test_the_committed_end_of_a_remote_partition_is_known_or_left_out(
    entry: LedgerEntry | str | None, ends: dict[TopicPartition, int]
) -> None:
    cache, _ = ledger_cache()
    tracked = tracked_partition()
    assert tracked.lease
    if isinstance(entry, str):
        entry = entry_for_lease(tracked.lease, is_open=False)
    cache.entries = {SOURCE: entry} if entry else {}
    assert cache.committed_target_ends([tracked]) == ends


def test_a_recorded_entry_is_closed_only_if_the_partition_waits() -> None:
    cache, ledger = ledger_cache()
    for state, is_open in ((LeaseState.WAITING, False), (LeaseState.DOUBTFUL, True)):
        tracked = tracked_partition(state)
        cache.record_and_reopen(tracked)
        entry = cache.entries[SOURCE]
        assert entry.extension
        assert entry.extension.is_open is is_open
        assert tracked.needs_resume_point
    assert ledger.writes == [], "only in memory"
