"""The ways out of a course: what is still sent, and when it is given back."""

from __future__ import annotations

import pytest

from sparkmirror.copy.course import Course, Wait
from sparkmirror.copy.lease import Identity, Lease
from sparkmirror.copy.messages import How
from sparkmirror.copy.parcel import Parcel
from sparkmirror.copy.partition import Partition
from sparkmirror.copy.sorting import Sorter
from sparkmirror.model import TopicPartition
from sparkmirror.wire.header import read_header
from sparkmirror.wire.records import Record, build
from sparkmirror.wire.target import Target


def course() -> Course:
    """A course with two batches, the first of them in flight."""
    partition = Partition(
        Lease(
            source=TopicPartition("orders", 0),
            target=TopicPartition("primary.orders", 0),
            position=0,
            expected=0,
            identity=Identity(producer_id=1, producer_epoch=0, anchor=0),
        )
    )
    for offset in (0, 1):
        batch = memoryview(build([Record(offset, 1, None, b"v")]))
        partition.arrived(
            Parcel(
                header=read_header(batch),
                batch=batch,
                spans=((offset, 1),),
                source_next=offset + 1,
                release=lambda: None,
            )
        )
    assert partition.next_to_send()
    return Course(partition, Sorter(Target(max_message_bytes=1000, log_append_time=False)))


def acknowledge(one: Course) -> None:
    one.partition.acknowledged(one.partition.flying[0])
    one.partition.answered()


def test_trouble_at_the_source_waits_until_all_that_was_fetched_is_copied() -> None:
    one = course()
    one.finish_with(How.OUT_OF_RANGE, "retention")
    acknowledge(one)
    before = one.is_out
    assert one.is_sending
    assert one.partition.next_to_send()
    acknowledge(one)
    assert (before, one.is_out) == (False, True)
    assert one.partition.position == 2


def test_trouble_at_the_target_waits_for_answers_only() -> None:
    one = course()
    one.end_with(How.TARGET_GONE, "deleted")
    assert not one.is_sending
    before = one.is_out
    one.partition.answered()
    assert (before, one.is_out) == (False, True)


def test_a_close_lets_go_of_what_was_not_sent() -> None:
    one = course()
    one.close()
    acknowledge(one)
    assert one.is_out
    assert one.partition.position == 1


@pytest.mark.parametrize("first", ["close", "finish"])
def test_trouble_at_the_target_ends_what_was_finishing(first: str) -> None:
    one = course()
    if first == "close":
        one.close()
    else:
        one.finish_with(How.REFUSED, "too large")
    one.end_with(How.FENCED, "somebody else")
    one.end_with(How.REFUSED, "later")
    assert (one.how, one.why) == (How.FENCED, "somebody else")


def test_a_wait_grows_and_begins_anew_after_a_success() -> None:
    wait = Wait()
    pauses = []
    for _ in range(4):
        wait.begin("why", 0.0)
        pauses.append(wait.until)
    assert pauses[3] > 2 * pauses[0]
    wait.end()
    wait.begin("why", 0.0)
    assert wait.until < pauses[2]
