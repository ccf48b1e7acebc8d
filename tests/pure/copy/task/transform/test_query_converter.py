"""Fetched batches through the query of a connector: what is queued, and how often it is asked."""

from __future__ import annotations

import random
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.copy.task.transform.query_converter import (
    LOG_APPEND_TIME,
    MAX_WAITING_ROWS,
    QueryConverter,
)
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.offsets.run_map import RunMap
from sparkmirror.wire.batch.lanes.lane_reason import LaneReason
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.support.copy.pending_batches import make_lease
from tests.support.copy.record_evaluators import (
    BAD,
    QUERY,
    UppercaseEvaluator,
    query_converter,
    uppercase,
)
from tests.support.copy.source_batches import StoredBatch, random_log
from tests.support.copy.transformed_queues import FIRST, LIMITS, convert, send_all, stored
from tests.support.kafka.record_batches import LOG_APPEND_TIME as LOG_APPEND_TIME_BIT
from tests.support.kafka.record_batches import build_stored_batch, without_offsets

VALUES: list[bytes | None] = [None, b"", b"v" * 300, b"abc"]
BAD_VALUES = [*VALUES, BAD]


def expected(records: list[Record]) -> list[Record]:
    """What the evaluator gives, up to the first record that fails."""
    wanted: list[Record] = []
    for record in records:
        outcome = uppercase(record)
        if outcome is None:
            continue
        if not isinstance(outcome, Record):
            break
        wanted.append(outcome)
    return wanted


@given(st.integers(0, 1 << 30), st.sampled_from(LIMITS))
def test_every_kept_row_is_queued_once_with_its_source_offset(
    seed: int, limits: TargetLimits
) -> None:
    log = random_log(random.Random(seed), FIRST, VALUES)
    source = [record for one in log for record in one.records]
    wanted = expected(source)
    evaluator = UppercaseEvaluator()
    queue, converter = PartitionQueue(make_lease(FIRST, 50)), query_converter(evaluator, limits)
    assert convert(queue, converter, log) is None
    sent, runs = send_all(queue, limits)
    assert without_offsets(sent) == without_offsets(wanted)
    assert queue.position == queue.next_fetch_offset == log[-1].next_offset
    assert converter.filtered == len(source) - len(wanted)
    assert len(evaluator.calls) <= 1, "all batches of a response are evaluated at once"
    translation = RunMap(known_from=FIRST)
    for run in runs:
        translation.append(*run)
    for position in range(FIRST, log[-1].next_offset + 1) if wanted else ():
        before = sum(1 for one in wanted if one.offset < position)
        assert translation.translate_downstream(position) == 50 + before


@given(st.integers(0, 1 << 30), st.data())
def test_a_row_that_fails_stops_the_conversion_at_its_offset(
    seed: int, data: st.DataObject
) -> None:
    log = random_log(random.Random(seed), FIRST, BAD_VALUES)
    position = data.draw(st.integers(FIRST, log[-1].next_offset))
    source = [record for one in log for record in one.records if record.offset >= position]
    failed = [
        record.offset
        for record in source
        if record.value == BAD and all(name != b"drop" for name, _ in record.headers)
    ]
    queue = PartitionQueue(make_lease(position, 50))
    converter = query_converter(UppercaseEvaluator())
    uncopyable = convert(queue, converter, log)
    assert (uncopyable and uncopyable.offset) == (failed[0] if failed else None)
    assert queue.next_fetch_offset == (failed[0] if failed else log[-1].next_offset)
    sent, _ = send_all(queue, TargetLimits())
    assert without_offsets(sent) == without_offsets(expected(source))


@given(st.integers(0, 1 << 30), st.integers(0, 4))
def test_a_query_stops_at_its_deadline_and_goes_on_from_there(
    seed: int, batches_in_time: int
) -> None:
    log = random_log(random.Random(seed), FIRST, VALUES)
    wanted = expected([record for one in log for record in one.records])
    queue = PartitionQueue(make_lease(FIRST, 50))
    converter = query_converter(UppercaseEvaluator())
    assert isinstance(converter, QueryConverter)
    sent: list[Record] = []
    while queue.next_fetch_offset < log[-1].next_offset:
        before = queue.next_fetch_offset
        converter.monotonic = count(1).__next__
        assert convert(queue, converter, log, deadline=batches_in_time) is None
        assert queue.next_fetch_offset > before, "each call makes progress"
        sent += send_all(queue, TargetLimits())[0]
    assert without_offsets(sent) == without_offsets(wanted)


def row(offset: int, value: bytes = b"a") -> Record:
    return Record(offset, 1, None, value)


def test_the_reason_names_the_offset_and_the_error_of_spark() -> None:
    queue = PartitionQueue(make_lease(FIRST, 50))
    log = [stored([row(100)]), stored([row(101), row(102, BAD), row(103)])]
    uncopyable = convert(queue, query_converter(UppercaseEvaluator()), log)
    assert uncopyable
    assert uncopyable.reason == (
        "the record at offset 102 failed in TRANSFORMATION: org.apache.spark.SparkException: bad"
        " value; change the transforms, or drop such records with errors.tolerance=all"
    )
    assert [batch.spans for batch in queue.ready] == [((100, 2),)]


def test_tolerated_rows_are_skipped_and_counted() -> None:
    queue = PartitionQueue(make_lease(FIRST, 50))
    converter = query_converter(UppercaseEvaluator(), tolerance="all")
    log = [stored([row(100), row(101, BAD), row(102)]), stored([row(103, BAD)])]
    assert convert(queue, converter, log) is None
    assert [(one.spans, one.next_source_offset) for one in queue.ready] == [
        (((100, 1), (102, 1)), 104)
    ]
    assert (converter.filtered, converter.skipped) == (0, 2)
    assert converter.pop_lanes() == {LaneReason.TRANSFORMED: 1, LaneReason.FILTERED: 1}


def test_a_marker_behind_waiting_rows_does_not_move_the_position_past_a_row_that_fails() -> None:
    marker = random_marker(101)
    queue = PartitionQueue(make_lease(FIRST, 50))
    uncopyable = convert(
        queue, query_converter(UppercaseEvaluator()), [stored([row(100, BAD)]), marker]
    )
    assert uncopyable
    assert queue.next_fetch_offset == 100


def random_marker(offset: int) -> StoredBatch:
    """The first log of random ones that begins with a marker."""
    for seed in count():
        log = random_log(random.Random(seed), offset, VALUES)
        if not log[0].records and not log[0].aborted and log[0].next_offset == offset + 1:
            return log[0]
    raise AssertionError


def test_rows_are_evaluated_in_parts_of_a_limited_size() -> None:
    evaluator = UppercaseEvaluator()
    queue = PartitionQueue(make_lease(FIRST, 50))
    half = MAX_WAITING_ROWS // 2
    log = [stored([row(100 + part * half + n) for n in range(half)]) for part in range(5)]
    assert convert(queue, query_converter(evaluator), log) is None
    assert [len(call) for call in evaluator.calls] == [2 * half, 2 * half, half]


def test_rows_of_a_batch_with_append_times_say_so() -> None:
    evaluator = UppercaseEvaluator()
    data = build_stored_batch([row(100)], bits=LOG_APPEND_TIME_BIT)
    log = [StoredBatch(data=bytes(data), next_offset=101)]
    convert(PartitionQueue(make_lease(FIRST, 50)), query_converter(evaluator), log)
    assert [one.timestamp_type for one in evaluator.calls[0]] == [LOG_APPEND_TIME]


def test_a_time_that_no_producer_sends_fails_the_record() -> None:
    records = [Record(100, -2, None, b"a")]
    uncopyable = convert(
        PartitionQueue(make_lease(FIRST, 50)),
        query_converter(UppercaseEvaluator()),
        [stored(records)],
    )
    assert uncopyable
    assert "Invalid record timestamp -2" in uncopyable.reason


def test_a_process_without_spark_refuses_a_query() -> None:
    with pytest.raises(ConfigError, match=r"sparkmirror\.transform\.sql needs Spark"):
        ConverterFactory.for_settings(CopySettings(transforms=QUERY))
