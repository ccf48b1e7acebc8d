"""What the driver keeps of receipts: every record is accounted for once, whoever is lost."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.pending_receipts import MissingReceipt, PendingReceipts
from sparkmirror.copy.driver.tracked_partition import TrackedPartition
from sparkmirror.model import TopicPartition
from tests.support.copy.pending_batches import make_lease


def hello(attempt: int = 0, epoch: int = 1) -> Hello:
    return Hello(task=0, attempt=attempt, host="h", pid=1, epoch=epoch)


def place(owner: Hello | None = None) -> TrackedPartition:
    made = TrackedPartition(TopicPartition("orders", 0), TopicPartition("primary.orders", 0), 0)
    made.set_lease(make_lease())
    if owner:
        made.grant_to(owner)
    return made


def copy(there: TrackedPartition, records: int, size: int = 0) -> None:
    """The next so many records are on the target, and told."""
    assert there.lease
    now = there.lease
    there.advance_to(now.position + records, now.expected + records, now.records + records)
    there.bytes += size


def counterfoils() -> PendingReceipts:
    ticks = itertools.count(1000)
    return PendingReceipts(lambda: next(ticks))


def summed(unclaimed: list[MissingReceipt]) -> list[tuple[int, int, int, int, int]]:
    """Attempt, source range, records and bytes of each."""
    receipts = [(one.hello.attempt, one.receipt) for one in unclaimed]
    return [(n, r.source_first, r.source_last, r.records, r.bytes) for n, r in receipts]


def test_what_was_handed_in_and_landed_is_forgotten() -> None:
    kept, mine = counterfoils(), place(hello())
    kept.on_attempt_started(hello())
    copy(mine, 5)
    kept.add(hello(), mine)
    kept.on_attempt_done(hello())
    assert kept.close_epoch(1, landed=True) == []
    assert kept.close_epoch(2, landed=False) == []


def test_a_lost_attempt_leaves_what_it_had_told_and_what_was_found_later() -> None:
    kept, mine = counterfoils(), place(hello())
    kept.on_attempt_started(hello())
    copy(mine, 5, 700)
    kept.add(hello(), mine)
    kept.on_attempt_lost(hello())
    mine.release(clean=False, now=0.0)
    copy(mine, 3)
    kept.add(hello(), mine)
    (one,) = kept.close_epoch(1, landed=True)
    assert summed([one]) == [(0, 100, 107, 8, 700)]
    assert (one.receipt.target_first, one.receipt.target_last) == (50, 57)
    assert (one.started_ms, one.ended_ms) == (1000, 1001)
    assert kept.close_epoch(2, landed=True) == []


def test_what_is_found_after_the_books_were_closed_is_written_next_time() -> None:
    kept, mine = counterfoils(), place(hello())
    kept.on_attempt_started(hello())
    kept.on_attempt_lost(hello())
    mine.release(clean=False, now=0.0)
    assert kept.close_epoch(1, landed=True) == []
    copy(mine, 3)
    kept.add(hello(), mine)
    assert summed(kept.close_epoch(2, landed=True)) == [(0, 100, 102, 3, 0)]


def test_an_epoch_that_failed_took_all_receipts_with_it() -> None:
    kept, mine = counterfoils(), place(hello())
    kept.on_attempt_started(hello())
    copy(mine, 5)
    kept.add(hello(), mine)
    kept.on_attempt_done(hello())
    assert summed(kept.close_epoch(1, landed=False)) == [(0, 100, 104, 5, 0)]


def test_an_end_that_is_heard_late_belongs_to_its_own_epoch() -> None:
    kept, mine = counterfoils(), place(hello())
    kept.on_attempt_started(hello())
    copy(mine, 5)
    assert kept.close_epoch(1, landed=True) == []
    kept.add(hello(), mine)
    kept.on_attempt_done(hello())
    assert kept.close_epoch(2, landed=False) == [], "it had landed"


def test_those_that_have_just_come_are_not_asked() -> None:
    kept, mine = counterfoils(), place(hello(epoch=2))
    kept.on_attempt_started(hello(epoch=2))
    copy(mine, 5)
    kept.add(hello(epoch=2), mine)
    kept.on_attempt_done(hello(epoch=2))
    assert kept.close_epoch(1, landed=False) == []
    assert kept.close_epoch(2, landed=True) == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans(), st.booleans())))
def test_what_landed_and_what_is_unclaimed_is_everything(
    attempts: list[tuple[int, int, bool, bool]],
) -> None:
    """Each attempt: records told, records found later, whether it is lost, whether rows land."""
    kept, mine, landed, claimed = counterfoils(), place(), 0, 0
    for number, (told, found, is_lost, lands) in enumerate(attempts):
        me = hello(number, epoch=number)
        kept.on_attempt_started(me)
        mine.grant_to(me)
        copy(mine, told)
        kept.add(me, mine)
        mine.release(clean=not is_lost, now=0.0)
        if is_lost:
            kept.on_attempt_lost(me)
            copy(mine, found)
            kept.add(me, mine)
            assert mine.lease
            mine.set_lease(mine.lease)
        else:
            kept.on_attempt_done(me)
            landed += told if lands else 0
        claimed += sum(one.receipt.records for one in kept.close_epoch(number, landed=lands))
    assert mine.lease
    assert landed + claimed == mine.lease.records
