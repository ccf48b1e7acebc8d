"""Dead letters are written in the background, and partitions go on when the target has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.control.messages import LeaseEndReason
from sparkmirror.copy.task.leased_partition import LeasedPartition
from sparkmirror.copy.task.produce.dead_letter import DeadLetter
from sparkmirror.copy.task.produce.dead_letter_appender import AddressedDeadLetter, split
from sparkmirror.copy.task.produce.dead_letter_writer import DeadLetterWriter
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.errors import (
    ClusterUnavailable,
    MirrorError,
    NotAuthorized,
    RequestRefused,
    TopicMissing,
)
from sparkmirror.wire.batch.records import Record
from tests.support.copy.pending_batches import (
    make_batch,
    make_lease,
    make_partition,
    without_producer_id,
)


class FakeTarget:
    """Both the background and the topic: `answer` ends the write that is under way."""

    def __init__(self) -> None:
        self.writes: list[list[int]] = []
        self.is_idempotent = True
        self.retry_error = ""
        self._open: list[tuple[Callable[[Any], None], Callable[[MirrorError], None]]] = []
        self._work: Callable[[], Any] = lambda: None

    def run_in_executor(
        self,
        work: Callable[[], Any],
        on_result: Callable[[Any], None],
        on_error: Callable[[MirrorError], None],
    ) -> None:
        assert not self._open, "one write at a time"
        self._work = work
        self._open.append((on_result, on_error))
        work()

    def append(self, letters: Sequence[AddressedDeadLetter], *, is_idempotent: bool) -> None:
        self.is_idempotent = is_idempotent
        self.writes.append([letter.record.offset for letter in letters])

    def close(self, *, is_idle: bool) -> None:
        assert is_idle is not bool(self._open)

    def answer(self, error: MirrorError | None = None) -> None:
        on_result, on_error = self._open.pop()
        if error:
            on_error(error)
        else:
            on_result(None)


@pytest.fixture
def target() -> FakeTarget:
    return FakeTarget()


@pytest.fixture
def released() -> list[LeasedPartition]:
    return []


@pytest.fixture
def writer(target: FakeTarget, released: list[LeasedPartition]) -> DeadLetterWriter:
    return DeadLetterWriter(target, target, "failed", released.append, clock=lambda: 1000.0)


def partition_with(*offsets: int, number: int = 3, then: int = 0) -> LeasedPartition:
    """A partition whose records at these offsets failed; behind them `then` records wait."""
    queue = PartitionQueue(make_lease(100, partition=number))
    for offset in offsets:
        queue.add_dead_letter(DeadLetter(Record(offset, 1, None, b"v")))
    queue.skip_to(offsets[-1] + 1)
    if then:
        queue.enqueue(make_batch(queue.next_fetch_offset, then))
    return make_partition(queue)


def test_letters_of_all_partitions_are_one_write_and_their_positions_move_behind_it(
    writer: DeadLetterWriter, target: FakeTarget, released: list[LeasedPartition]
) -> None:
    first, second = partition_with(100, 102, then=2), partition_with(101, number=4)
    writer.add(first)
    writer.add(second)
    writer.poll(0.0)
    assert target.writes == [[100, 102, 101]]
    assert [one.queue.position for one in (first, second)] == [100, 101]
    held = [first.queue.is_held]
    writer.poll(0.0)
    target.answer()
    assert released == [first, second]
    assert [*held, first.queue.is_held] == [True, False]
    assert second.queue.position == 102
    counts = FailureCounts(dead_letters=2, dead_letter_requests=2)
    assert [first.has_failures, first.pop_failures(), first.has_failures] == [True, counts, False]
    writer.poll(0.0)
    assert len(target.writes) == 1
    assert writer.next_turn_at == float("inf")


def test_letters_that_come_during_a_write_are_in_the_next_one(
    writer: DeadLetterWriter, target: FakeTarget
) -> None:
    partition = partition_with(100)
    writer.add(partition)
    writer.poll(0.0)
    partition.queue.add_dead_letter(DeadLetter(Record(105, 1, None, b"v")))
    partition.queue.skip_to(106)
    writer.add(partition)
    target.answer()
    assert partition.queue.position == 105
    writer.poll(0.0)
    target.answer()
    assert target.writes == [[100], [105]]
    assert partition.queue.position == 106


@pytest.mark.parametrize(
    "error", [ClusterUnavailable("b", "is down"), TopicMissing("b", "does not exist")]
)
def test_a_failure_that_may_pass_is_shown_and_all_letters_are_written_again(
    writer: DeadLetterWriter, target: FakeTarget, error: MirrorError
) -> None:
    partition = partition_with(100, 101)
    writer.add(partition)
    writer.poll(0.0)
    target.answer(error)
    assert partition.progress().held_reason == f"dead letters for failed: target: {error}"
    assert not partition.is_ending
    assert writer.next_turn_at > 1000.0
    writer.poll(1000.0)
    assert len(target.writes) == 1, "it waits"
    writer.poll(writer.next_turn_at)
    target.answer()
    assert target.writes == [[100, 101], [100, 101]]
    assert partition.progress().held_reason == ""
    assert partition.pop_failures() == FailureCounts(
        dead_letters=2, dead_letter_requests=4, dead_letter_failures=2
    )


def test_a_write_that_is_tried_again_shows_why(
    writer: DeadLetterWriter, target: FakeTarget
) -> None:
    partition = partition_with(100)
    writer.add(partition)
    writer.poll(0.0)
    target.retry_error = "no answer"
    writer.poll(0.0)
    assert partition.progress().held_reason.endswith("target: no answer")


def test_without_the_right_to_write_all_partitions_with_letters_are_held(
    writer: DeadLetterWriter, target: FakeTarget
) -> None:
    partitions = [partition_with(100, 101), partition_with(100, number=4)]
    for partition in partitions:
        writer.add(partition)
    writer.poll(0.0)
    target.answer(NotAuthorized("b", "not allowed"))
    assert [one.end_reason for one in partitions] == [LeaseEndReason.NOT_AUTHORIZED] * 2
    assert "b: not allowed" in partitions[0].end_message
    writer.poll(0.0)
    assert len(target.writes) == 1


def test_only_the_partition_of_a_refused_letter_is_held(
    writer: DeadLetterWriter, target: FakeTarget
) -> None:
    error = RequestRefused("b", "too large", code=10)
    refused, other = partition_with(101, then=5), partition_with(100, number=4)
    writer.add(refused)
    writer.add(other)
    writer.poll(0.0)
    target.answer(error)
    assert not refused.is_ending
    writer.poll(0.0)
    assert target.writes[1:] == [[101]], "alone"
    target.answer(error)
    assert refused.end_reason is LeaseEndReason.REFUSED
    assert "the record at offset 101" in refused.end_message
    assert str(error) in refused.end_message
    assert refused.is_ended
    assert refused.queue.abandon().position == 101
    writer.poll(0.0)
    assert target.writes[2:] == [[100]]
    target.answer()
    assert other.queue.position == 101
    assert not other.is_ending


def test_the_letter_that_is_refused_is_found_by_halves(
    writer: DeadLetterWriter, target: FakeTarget
) -> None:
    partition = partition_with(*range(100, 120))
    writer.add(partition)
    for _ in range(20):
        writer.poll(0.0)
        if partition.is_ending:
            break
        target.answer(RequestRefused("b", "no", code=10) if 113 in target.writes[-1] else None)
    assert "offset 113" in partition.end_message
    assert partition.queue.abandon().position == 113
    written = [offset for one in target.writes if 113 not in one for offset in one]
    assert written == list(range(100, 113)), "each letter before it is written once"


def test_a_partition_with_a_refused_letter_is_written_alone_when_it_is_tried_again(
    writer: DeadLetterWriter, target: FakeTarget
) -> None:
    refused = partition_with(101)
    writer.add(refused)
    writer.poll(0.0)
    target.answer(RequestRefused("b", "no", code=10))
    assert refused.is_ended
    again, other = partition_with(101, 105), partition_with(100, number=4)
    writer.add(other)
    writer.add(again)
    for _ in range(2):
        writer.poll(0.0)
        target.answer()
    assert target.writes == [[101], [100], [101]]


def test_a_lease_that_is_closed_during_a_write_keeps_its_position(
    writer: DeadLetterWriter, target: FakeTarget
) -> None:
    partition = partition_with(100, then=3)
    writer.add(partition)
    writer.poll(0.0)
    partition.close()
    assert partition.is_ended
    writer.remove(partition)
    assert partition.queue.abandon().position == 100
    target.answer()
    assert partition.queue.position == 100
    writer.poll(0.0)
    assert len(target.writes) == 1


def test_a_refusal_after_the_lease_was_returned_changes_nothing(
    writer: DeadLetterWriter, target: FakeTarget
) -> None:
    partition = partition_with(100)
    writer.add(partition)
    writer.poll(0.0)
    partition.close()
    writer.remove(partition)
    partition.queue.abandon()
    target.answer(NotAuthorized("b", "no"))
    assert partition.end_reason is LeaseEndReason.CLOSED


def test_a_lease_that_ends_at_the_source_waits_for_its_letters(
    writer: DeadLetterWriter, target: FakeTarget
) -> None:
    partition = partition_with(100)
    writer.add(partition)
    partition.end_after_queue(LeaseEndReason.SOURCE_GONE, "gone")
    ended = [partition.is_ended]
    writer.poll(0.0)
    target.answer()
    assert [*ended, partition.is_ended] == [False, True]
    assert partition.queue.position == 101


def test_a_target_without_producer_ids_is_written_to_without_one(
    writer: DeadLetterWriter, target: FakeTarget
) -> None:
    queue = PartitionQueue(without_producer_id(make_lease()))
    queue.add_dead_letter(DeadLetter(Record(100, 1, None, b"v")))
    queue.skip_to(101)
    writer.add(make_partition(queue))
    writer.poll(0.0)
    assert not target.is_idempotent
    writer.close()


def test_a_full_queue_with_letters_is_not_looked_at_every_few_milliseconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 50.0)
    partition = partition_with(100)
    assert partition.fetchable_at(1) >= 50.1
    assert partition.fetchable_at(1 << 20) == 0.0


def test_batches_hold_as_many_letters_as_fit_and_at_least_one() -> None:
    records = [Record(n, 1, None, b"v") for n in range(5)]
    letters = [AddressedDeadLetter(0, one, 10) for one in records]
    assert list(split(letters, 25)) == [records[:2], records[2:4], records[4:]]
    assert list(split(letters, 0)) == [[one] for one in records]
