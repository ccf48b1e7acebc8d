"""Failed records with dead letters: nothing passes one before the target has its letter."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.produce.dead_letter import DeadLetter
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.transform.transforming_converter import TransformingConverter
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.support.copy.pending_batches import make_lease
from tests.support.copy.source_batches import random_log
from tests.support.copy.transform_chains import MASK_PRICE
from tests.support.copy.transformed_queues import FIRST, convert, converter_of, send_all, stored

QUEUE = "sparkmirror.errors.deadletterqueue"
WITH_LETTERS: Mapping[str, str] = {**MASK_PRICE, f"{QUEUE}.topic.name": "failed"}
WITH_CONTEXT: Mapping[str, str] = {**WITH_LETTERS, f"{QUEUE}.context.headers.enable": "true"}
INSERT: Mapping[str, str] = {
    "transforms": "add",
    "transforms.add.type": "org.apache.kafka.connect.transforms.InsertHeader",
    "transforms.add.header": "h",
    "transforms.add.value.literal": "v",
    f"{QUEUE}.topic.name": "failed",
}
"""Fails on every record, by its headers alone: keys and values stay closed."""
GOOD, BAD = b'{"price":7}', b"no JSON"


def records(*values: bytes) -> list[Record]:
    return [Record(FIRST + n, n, b"%d" % n, value) for n, value in enumerate(values)]


def tolerant(chain: Mapping[str, str]) -> tuple[PartitionQueue, BatchConverter]:
    return PartitionQueue(make_lease(FIRST)), converter_of(chain, tolerance="all")


def letters_of(queue: PartitionQueue) -> list[Record]:
    return [letter.record for letter in queue.dead_letters]


def test_records_before_a_failed_one_are_sent_and_those_behind_wait_for_its_letter() -> None:
    queue, converter = (
        PartitionQueue(make_lease(FIRST)),
        converter_of(WITH_LETTERS, tolerance="all"),
    )
    assert convert(queue, converter, [stored(records(GOOD, BAD, GOOD))]) is None
    sent, _ = send_all(queue, TargetLimits())
    assert len(sent) == 1
    assert queue.position == FIRST + 1
    assert queue.is_held
    assert letters_of(queue) == records(GOOD, BAD, GOOD)[1:2]
    queue.acknowledge_dead_letters(list(queue.dead_letters))
    sent, _ = send_all(queue, TargetLimits())
    assert len(sent) == 1
    assert queue.position == FIRST + 3
    assert not queue.queued_bytes


def test_a_position_does_not_pass_failed_records_that_nothing_follows() -> None:
    queue, converter = (
        PartitionQueue(make_lease(FIRST)),
        converter_of(WITH_LETTERS, tolerance="all"),
    )
    convert(queue, converter, [stored(records(BAD, BAD))])
    first, second = queue.dead_letters
    assert (queue.position, queue.next_fetch_offset) == (FIRST, FIRST + 2)
    queue.acknowledge_dead_letters([first])
    assert queue.position == FIRST + 1
    queue.acknowledge_dead_letters([second])
    assert queue.position == FIRST + 2


def test_letters_of_a_dropped_queue_are_made_again_and_late_answers_are_ignored() -> None:
    queue, converter = (
        PartitionQueue(make_lease(FIRST)),
        converter_of(WITH_LETTERS, tolerance="all"),
    )
    log = [stored(records(BAD, GOOD))]
    convert(queue, converter, log)
    late = list(queue.dead_letters)
    queue.drop_unsent()
    assert (queue.position, queue.next_fetch_offset, queue.queued_bytes) == (FIRST, FIRST, 0)
    convert(queue, converter, log)
    queue.acknowledge_dead_letters(late)
    assert queue.position == FIRST
    assert queue.is_held


def test_held_batches_are_dropped_with_their_letters_and_earlier_ones_are_sent() -> None:
    queue, converter = (
        PartitionQueue(make_lease(FIRST)),
        converter_of(WITH_LETTERS, tolerance="all"),
    )
    convert(queue, converter, [stored(records(GOOD))])
    convert(queue, converter, [stored(records(GOOD, BAD, GOOD)[1:])])
    queue.drop_held()
    assert (queue.next_fetch_offset, len(queue.dead_letters)) == (FIRST + 1, 0)
    assert len(send_all(queue, TargetLimits())[0]) == 1
    assert queue.position == FIRST + 1


def test_failed_records_behind_one_that_is_too_large_have_no_letter_yet() -> None:
    limits = TargetLimits(max_message_bytes=200)
    queue = PartitionQueue(make_lease(FIRST))
    converter = converter_of(WITH_LETTERS, limits, "all")
    large = b'{"x":"%s","price":1}' % (b"x" * 300)
    convert(queue, converter, [stored(records(BAD))])
    assert convert(queue, converter, [stored(records(BAD, GOOD, large, BAD)[1:])])
    assert queue.next_fetch_offset == FIRST + 2
    assert [one.offset for one in letters_of(queue)] == [FIRST]


def test_without_a_topic_failed_records_leave_no_letters() -> None:
    queue, converter = tolerant(MASK_PRICE)
    convert(queue, converter, [stored(records(BAD, GOOD))])
    assert not queue.dead_letters
    assert len(send_all(queue, TargetLimits())[0]) == 1


def test_a_letter_has_the_whole_record_though_the_chain_reads_headers_only() -> None:
    queue, converter = tolerant(INSERT)
    assert isinstance(converter, TransformingConverter)
    assert converter.headers
    written = [Record(FIRST, 5, b"k", b"v", ((b"n", None),)), Record(FIRST + 1, 6, None, None)]
    convert(queue, converter, [stored(written)])
    assert letters_of(queue) == written


def test_context_headers_follow_those_of_the_record() -> None:
    queue, converter = (
        PartitionQueue(make_lease(FIRST)),
        converter_of(WITH_CONTEXT, tolerance="all"),
    )
    convert(queue, converter, [stored([Record(FIRST, 5, b"k", BAD, ((b"n", b"1"),))])])
    (letter,) = letters_of(queue)
    assert letter.headers[0] == (b"n", b"1")
    context = dict(letter.headers[1:])
    assert context[b"__connect.errors.topic"] == b"orders"
    assert context[b"__connect.errors.offset"] == b"%d" % FIRST
    assert context[b"__connect.errors.connector.name"] == b"mirror"
    assert (letter.timestamp, letter.key, letter.value) == (5, b"k", BAD)


@given(st.integers(0, 1 << 30), st.lists(st.integers(0, 3), max_size=12))
def test_whatever_happens_no_failed_record_is_passed_without_its_letter(
    seed: int, steps: list[int]
) -> None:
    rng = random.Random(seed)
    log = random_log(rng, FIRST, [GOOD, BAD])
    source = [record for one in log for record in one.records]
    bad = [record.offset for record in source if record.value == BAD]
    queue, converter = (
        PartitionQueue(make_lease(FIRST)),
        converter_of(WITH_LETTERS, tolerance="all"),
    )
    written: list[int] = []
    sent: list[int] = []

    def check() -> None:
        queue.check_invariants()
        passed = max([queue.position - 1, *sent])
        assert all(offset in written for offset in bad if offset <= passed)

    def acknowledge(letters: list[DeadLetter]) -> None:
        written.extend(letter.source_offset for letter in letters)
        queue.acknowledge_dead_letters(letters)

    def send() -> None:
        while batch := queue.next_to_send():
            sent.extend(first + n for first, length in batch.spans for n in range(length))
            check()
            queue.acknowledge(batch)
            queue.on_request_done()

    for step in steps:
        if step == 0:
            convert(queue, converter, log[: rng.randint(1, len(log))])
        elif step == 1:
            acknowledge(list(queue.dead_letters)[: rng.randint(0, 3)])
        elif step == 2:
            send()
        else:
            queue.drop_unsent()
        check()
    convert(queue, converter, log)
    acknowledge(list(queue.dead_letters))
    send()
    check()
    assert queue.position == log[-1].next_offset
    assert sorted(set(written)) == bad
    assert sent == [record.offset for record in source if record.value != BAD]
    assert not queue.queued_bytes


def test_failed_records_are_logged_once_in_a_second_with_the_number_of_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    chain = {**MASK_PRICE, "errors.log.enable": "true"}
    queue, converter = tolerant(chain)
    assert isinstance(converter, TransformingConverter)
    assert converter.failures
    log = converter.failures.reporting.log
    assert log
    now = 100.0
    log.clock = lambda: now
    with caplog.at_level(logging.ERROR):
        convert(queue, converter, [stored(records(GOOD, BAD, BAD))])
        assert converter.errors_logged == 1
        assert f"offset={FIRST + 1}, timestamp=1}}" in caplog.text
        assert BAD.decode() not in caplog.text
        log.poll(now)
        convert(queue, converter, [stored(records(*[BAD] * 5)[3:])])
        assert len(caplog.messages) == 1
        now += 1.0
        log.poll(now)
    assert caplog.messages[1:] == ["orders-3: 3 more records failed in transformations"]
    assert converter.errors_logged == 1
