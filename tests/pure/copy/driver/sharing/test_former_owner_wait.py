"""How long a conductor waits for the former owner of a partition."""

from __future__ import annotations

from sparkmirror.copy.driver.sharing.former_owner_wait import LIMIT_S, QUIET_S, FormerOwnerWait
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.model import TopicPartition

P = TopicPartition("t", 0)
ENTRY = LedgerEntry(position=1)


def test_an_owner_that_shows_no_sign_of_life_is_fenced_soon() -> None:
    waits = FormerOwnerWait()
    assert waits.is_waiting(P, ENTRY, 10, 0.0)
    assert waits.is_waiting(P, ENTRY, 10, QUIET_S * 0.9)
    assert not waits.is_waiting(P, ENTRY, 10, QUIET_S)


def test_an_owner_that_still_works_gets_longer() -> None:
    waits = FormerOwnerWait()
    assert waits.is_waiting(P, ENTRY, 10, 0.0)
    assert waits.is_waiting(P, ENTRY, 11, QUIET_S), "it has appended"
    assert waits.is_waiting(P, LedgerEntry(position=2), 11, 2 * QUIET_S * 0.99), "it has flushed"


def test_no_owner_gets_more_than_the_limit() -> None:
    waits, now, end = FormerOwnerWait(), 0.0, 0
    while waits.is_waiting(P, ENTRY, end, now):
        now, end = now + QUIET_S / 2, end + 1
    assert now == LIMIT_S


def test_a_partition_that_was_given_back_waits_again_the_next_time() -> None:
    waits = FormerOwnerWait()
    assert waits.is_waiting(P, ENTRY, 10, 0.0)
    waits.forget(P)
    assert waits.is_waiting(P, ENTRY, 10, LIMIT_S)
