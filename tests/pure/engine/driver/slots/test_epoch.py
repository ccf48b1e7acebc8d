"""When an epoch ends, and when it lacks slots."""

from __future__ import annotations

from sparkmirror.engine.driver.slots.epoch import (
    MAX_PARTITIONS_OF_SHORT_EPOCH,
    SLOT_TIMEOUT_S,
    Epoch,
)


def running_epoch(number: int) -> Epoch:
    epoch = Epoch(epoch_s=100.0, first_epoch_s=15.0)
    epoch.begin(number, 10.0)
    return epoch


def test_an_epoch_without_slots_does_not_end() -> None:
    assert not running_epoch(2).is_over(1e9)


def test_the_first_slot_decides_when_an_epoch_ends() -> None:
    epoch = running_epoch(2)
    assert epoch.on_slot_connected(13.0, is_last=False) == 3.0
    assert epoch.on_slot_connected(20.0, is_last=True) is None
    assert not epoch.is_over(112.9)
    assert epoch.is_over(113.0)


def test_the_first_epoch_is_short_once_every_slot_is_connected() -> None:
    epoch = running_epoch(1)
    epoch.on_slot_connected(13.0, is_last=False)
    assert not epoch.is_over(112.9)
    epoch.on_slot_connected(20.0, is_last=True)
    assert epoch.is_over(35.0)


def test_the_first_epoch_ends_at_once_if_no_job_runs() -> None:
    epoch = running_epoch(1)
    epoch.on_slot_connected(20.0, is_last=True, is_idle=True)
    assert epoch.is_over(20.0)


def test_the_first_epoch_is_long_with_many_partitions() -> None:
    many = MAX_PARTITIONS_OF_SHORT_EPOCH + 1
    epoch = running_epoch(1)
    assert not epoch.is_over(1e9, many), "no slot is connected"
    epoch.on_slot_connected(20.0, is_last=True)
    assert epoch.is_over(35.0, MAX_PARTITIONS_OF_SHORT_EPOCH)
    assert not epoch.is_over(119.9, many)
    assert epoch.is_over(120.0, many)


def test_an_epoch_ends_once() -> None:
    epoch = running_epoch(2)
    epoch.on_slot_connected(13.0, is_last=True)
    assert epoch.end()
    assert not epoch.end()
    assert not epoch.is_over(1e9)


def test_slots_are_lacking_while_none_is_connected_for_long() -> None:
    epoch = running_epoch(2)
    late = 10.0 + SLOT_TIMEOUT_S + 0.1
    assert not epoch.lacks_slots(29.0, connected=0)
    assert epoch.lacks_slots(late, connected=0)
    assert not epoch.lacks_slots(late, connected=1)
    epoch.on_slot_lost(late)
    assert not epoch.lacks_slots(late + 1.0, connected=0)
    epoch.end()
    assert not epoch.lacks_slots(1e9, connected=0)
