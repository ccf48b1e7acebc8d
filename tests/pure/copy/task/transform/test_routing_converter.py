"""Fetched batches through chains and queries that send records of one topic to different topics."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.produce.partition_queue import PartitionQueue
from sparkmirror.copy.task.produce.routing_queue import RoutingQueue
from sparkmirror.copy.task.produce.transaction_state import Transaction
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.copy.task.transform.query_converter import QueryConverter
from sparkmirror.copy.task.transform.routed_batches import RoutedTopic
from sparkmirror.copy.task.transform.transforming_converter import TransformingConverter
from sparkmirror.wire.batch.lanes.lane_reason import LaneReason
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.batch.target_limits import TargetLimits
from tests.pure.copy.task.produce.test_transaction_state import LEASE, PRODUCER
from tests.support.copy.record_evaluators import NULL_TOPIC, QUERY, KeyAsTopicEvaluator
from tests.support.copy.source_batches import random_log
from tests.support.copy.transform_chains import ROUTE_MARKED, routed_records
from tests.support.copy.transformed_queues import FIRST, LIMITS, convert, send_all, stored
from tests.support.kafka.record_batches import without_offsets

HOME = LEASE.target.topic
VALUES = [None, b"", b"v" * 300, b"\xff"]
MARKED = ((b"drop", b"1"),)
WIDE = RoutedTopic(8, TargetLimits())
"""A topic that has the partition of the lease, 3."""


def converter_of(
    topics: Mapping[str, RoutedTopic],
    transforms: Mapping[str, str] = ROUTE_MARKED,
    limits: TargetLimits | None = None,
) -> TransformingConverter:
    settings = CopySettings(transforms=transforms)
    factory = ConverterFactory.for_settings(settings)
    lease = replace(LEASE, chain=settings.chain)
    assert factory.routes_records(lease)
    assert not factory.routes_records(LEASE), "a heartbeats topic passes no chain"
    converter = factory.new_routing_converter(lease, limits or TargetLimits(), {}, topics)
    assert isinstance(converter, TransformingConverter)
    return converter


def new_queue() -> RoutingQueue:
    return RoutingQueue(LEASE, Transaction(PRODUCER))


def sent_by_topic(queue: RoutingQueue, limits: TargetLimits) -> dict[str, list[Record]]:
    queues: dict[str, PartitionQueue] = {HOME: queue, **queue.routes}
    sent = {topic: send_all(one, limits)[0] for topic, one in queues.items()}
    return {topic: records for topic, records in sent.items() if records}


@given(st.integers(0, 1 << 30), st.sampled_from(LIMITS), st.integers(0, 4))
def test_every_record_is_queued_once_for_its_topic_in_source_order(
    seed: int, limits: TargetLimits, batches_in_time: int
) -> None:
    """A topic that is not known ends the conversion; with it the conversion goes on there."""
    log = random_log(random.Random(seed), FIRST, VALUES)
    wanted: dict[str, list[Record]] = {}
    for topic, record in routed_records(ROUTE_MARKED, [r for b in log for r in b.records], HOME):
        wanted.setdefault(topic, []).append(record)
    topics: dict[str, RoutedTopic] = {}
    queue, converter = new_queue(), converter_of(topics, limits=limits)
    sent: dict[str, list[Record]] = {}
    while queue.next_fetch_offset < log[-1].next_offset:
        before = queue.position
        converter.monotonic = count(1).__next__
        stopped = convert(queue, converter, log, deadline=batches_in_time)
        if stopped:
            assert stopped.offset == queue.next_fetch_offset
            assert stopped.wanted_topic in wanted
            assert stopped.wanted_topic not in topics
            topics[stopped.wanted_topic] = RoutedTopic(4, limits)
        assert queue.position == (before if queue.has_group else queue.next_fetch_offset)
        for topic, records in sent_by_topic(queue, limits).items():
            sent.setdefault(topic, []).extend(records)
        assert queue.position == queue.next_fetch_offset
        assert stopped or queue.position > before
    assert {topic: without_offsets(records) for topic, records in sent.items()} == {
        topic: without_offsets(records) for topic, records in wanted.items()
    }
    assert queue.records == sum(map(len, wanted.values()))


def record(offset: int, value: bytes = b"v", *, is_marked: bool = False) -> Record:
    return Record(offset, 1, None, value, MARKED if is_marked else ())


def test_a_topic_with_too_few_partitions_must_be_enlarged_first() -> None:
    queue = new_queue()
    converter = converter_of({"marked": RoutedTopic(3, TargetLimits())})
    log = [stored([record(100), record(101, is_marked=True), record(102)])]
    stopped = convert(queue, converter, log)
    assert stopped
    assert (stopped.offset, stopped.wanted_topic) == (101, "marked")
    assert [batch.spans for batch in queue.unacknowledged()] == [((100, 1),)]
    assert converter.lanes == {LaneReason.TRANSFORMED: 1}


def test_a_record_that_is_too_large_for_its_topic_ends_the_group_in_all_topics() -> None:
    queue = new_queue()
    converter = converter_of({"marked": RoutedTopic(4, TargetLimits(max_message_bytes=200))})
    big = record(103, b"v" * 300, is_marked=True)
    log = [
        stored([record(100), record(101, is_marked=True)]),
        stored([record(102), big, record(104), record(105, is_marked=True)]),
    ]
    stopped = convert(queue, converter, log)
    assert stopped
    assert stopped.offset == 103
    assert "max.message.bytes" in stopped.reason
    assert not stopped.wanted_topic
    assert [batch.spans for batch in queue.ready] == [((100, 1), (102, 1))]
    assert [batch.spans for batch in queue.queue_for("marked").ready] == [((101, 1),)]
    assert queue.next_fetch_offset == 103
    assert converter.ages.records == 3


@pytest.mark.parametrize("name", ["", "..", "a/b", "ö", "x" * 250])
def test_a_name_that_no_topic_can_have_holds_the_record(name: str) -> None:
    chain = {**ROUTE_MARKED, "transforms.route.replacement": name}
    queue, converter = new_queue(), converter_of({}, chain)
    stopped = convert(queue, converter, [stored([record(100), record(101, is_marked=True)])])
    assert stopped
    assert stopped.offset == 101
    assert "InvalidTopicException" in stopped.reason
    assert not stopped.wanted_topic


def test_records_of_very_different_times_are_in_batches_of_their_own() -> None:
    queue, converter = new_queue(), converter_of({"marked": WIDE})
    old = [record(offset, is_marked=True) for offset in (100, 101)]
    new = [old[0]._replace(offset=102, timestamp=1_700_000_000_000)]
    assert convert(queue, converter, [stored(old), stored(new)]) is None
    assert [batch.spans for batch in queue.queue_for("marked").ready] == [((100, 2),), ((102, 1),)]


# -- queries that compute `topic` -----------------------------------------------------------------

STRIP = {
    "transforms": "strip",
    "transforms.strip.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.strip.regex": "plain\\.(.*)",
    "transforms.strip.replacement": "$1",
}


def query_converter_of(
    topics: Mapping[str, RoutedTopic], beside: Mapping[str, str] | None = None
) -> TransformingConverter:
    """A converter with a query that gives each record its key as topic; the old one without key."""
    settings = CopySettings(transforms={**QUERY, **(beside or {})})
    factory = ConverterFactory.for_settings(settings, lambda _: KeyAsTopicEvaluator())
    lease = replace(LEASE, chain=settings.chain)
    assert factory.routes_records(lease)
    is_routed = "transforms" in settings.transforms
    policy_topics = {lease.source.topic: f"plain.{HOME}"} if is_routed else {}
    converter = factory.new_routing_converter(lease, TargetLimits(), policy_topics, topics)
    assert isinstance(converter, QueryConverter)
    return converter


def keyed(offset: int, key: bytes | None) -> Record:
    return Record(offset, 1, key, b"v")


def test_records_of_a_query_go_to_the_topics_that_it_computes_in_source_order() -> None:
    topics: dict[str, RoutedTopic] = {}
    queue, converter = new_queue(), query_converter_of(topics)
    log = [
        stored([keyed(100, b"late"), keyed(101, None)]),
        stored([keyed(102, b"late"), keyed(103, HOME.encode())]),
    ]
    stopped = convert(queue, converter, log)
    assert stopped
    assert (stopped.offset, stopped.wanted_topic) == (100, "late")
    topics["late"] = WIDE
    assert convert(queue, converter, log) is None
    assert [batch.spans for batch in queue.ready] == [((101, 1), (103, 1))]
    assert [batch.spans for batch in queue.queue_for("late").ready] == [((100, 1), (102, 1))]
    assert queue.next_fetch_offset == 104
    assert converter.ages.records == 4


def test_a_route_beside_a_query_applies_to_the_topics_that_it_computes() -> None:
    queue, converter = new_queue(), query_converter_of({"late": WIDE}, STRIP)
    log = [stored([keyed(100, None), keyed(101, b"plain.late"), keyed(102, b"late")])]
    assert convert(queue, converter, log) is None
    assert [batch.spans for batch in queue.ready] == [((100, 1),)]
    assert [batch.spans for batch in queue.queue_for("late").ready] == [((101, 2),)]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NULL_TOPIC, "java.lang.IllegalArgumentException: Topic cannot be null."),
        (b"a/b", "InvalidTopicException: Invalid topics: [a/b]"),
        (b"", "InvalidTopicException: Invalid topics: []"),
    ],
)
def test_a_record_without_a_possible_topic_fails_and_may_be_tolerated(
    topic: bytes, error: str
) -> None:
    log = [stored([keyed(100, None), keyed(101, topic), keyed(102, None)])]
    queue, converter = new_queue(), query_converter_of({})
    stopped = convert(queue, converter, log)
    assert stopped
    assert stopped.offset == 101
    assert not stopped.wanted_topic
    assert error in stopped.reason
    queue, converter = new_queue(), query_converter_of({}, {"errors.tolerance": "all"})
    assert convert(queue, converter, log) is None
    assert queue.next_fetch_offset == 103
    assert converter.skipped == 1
