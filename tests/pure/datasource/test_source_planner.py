"""Which offsets a batch and a micro-batch read, and that nothing is lost without a word."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import pytest

from sparkmirror.datasource.offset_positions import OffsetsJson, PartitionOffsets
from sparkmirror.datasource.offset_ranges import OffsetRange
from sparkmirror.datasource.options import SourceOptions
from sparkmirror.datasource.source_planner import NOTHING_READ, SourcePlanner
from sparkmirror.errors import ConfigError, RecordsLost
from sparkmirror.model import TopicPartition

OPTIONS = {"kafka.bootstrap.servers": "one:9092", "subscribe": "t"}
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


@dataclass
class LogsInMemory:
    """The first offset and the end of each partition."""

    bounds: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    cluster: str = "one:9092"
    asked_for: list[set[str]] = field(default_factory=list)

    def partitions(self, expected_topics: Collection[str] = ()) -> list[TopicPartition]:
        self.asked_for.append(set(expected_topics))
        return sorted(self.bounds)

    def require_named(self, partitions: Collection[TopicPartition]) -> None:
        assert partitions, "the topic is missing"

    def earliest(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        return {p: self.bounds[p][0] for p in partitions if p in self.bounds}

    def latest(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        return {p: self.bounds[p][1] for p in partitions if p in self.bounds}


def stream_planner(logs: LogsInMemory, **options: str) -> SourcePlanner:
    return SourcePlanner(SourceOptions.for_stream(OPTIONS | options), logs)


def batch_ranges(logs: LogsInMemory, **options: str) -> list[OffsetRange]:
    return SourcePlanner(SourceOptions.for_batch(OPTIONS | options), logs).batch_ranges()


def test_a_batch_reads_what_is_there() -> None:
    logs = LogsInMemory({ZERO: (3, 10), ONE: (5, 5)})
    assert batch_ranges(logs) == [OffsetRange(ZERO, 3, 10)]


def test_a_batch_reads_between_offsets() -> None:
    logs = LogsInMemory({ZERO: (3, 10), ONE: (0, 20)})
    found = batch_ranges(
        logs,
        startingOffsets='{"t": {"0": 4, "1": -2}}',
        endingOffsets='{"t": {"0": -1, "1": 7}}',
        minPartitions="4",
    )
    assert found == [
        *(OffsetRange(ZERO, start, end) for start, end in ((4, 7), (7, 10))),
        *(OffsetRange(ONE, start, end) for start, end in ((0, 2), (2, 4), (4, 7))),
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingOffsets": '{"t": {"0": 2}}'}, "t-0 begins at offset 3, but offset 2 was next"),
        ({"startingOffsets": '{"t": {"0": 12}}'}, "t-0 ends at offset 10, but offset 12 was next"),
        ({"endingOffsets": '{"t": {"0": 12}}'}, "endingOffsets of t-0 is 12, but its log ends at"),
    ],
)
def test_offsets_that_a_log_does_not_have_are_an_error(
    options: dict[str, str], sentence: str
) -> None:
    logs = LogsInMemory({ZERO: (3, 10)})
    with pytest.raises(RecordsLost, match=sentence):
        batch_ranges(logs, **options)
    found = batch_ranges(logs, failOnDataLoss="false", **options)
    assert found == [OffsetRange(ZERO, 3, 10)]


def test_offsets_must_be_given_for_all_partitions_and_no_others() -> None:
    logs = LogsInMemory({ZERO: (0, 10), ONE: (0, 10)})
    with pytest.raises(ConfigError, match="startingOffsets has no offset for t-1; add it"):
        batch_ranges(logs, startingOffsets='{"t": {"0": 2}}')
    with pytest.raises(ConfigError, match="an offset for u-0, not read here; remove it"):
        batch_ranges(logs, endingOffsets='{"t": {"0": 2, "1": 2}, "u": {"0": 1}}')


def test_the_first_micro_batch_of_a_stream_from_the_end_decides_where_it_starts() -> None:
    """A crash in that micro-batch repeats it: what was written meanwhile is read after it."""
    logs = LogsInMemory({ZERO: (0, 10)})
    end = stream_planner(logs).latest_offsets(NOTHING_READ, None)
    assert end == {"t": {"0": 10}}
    logs.bounds[ZERO] = (0, 15)
    restarted = stream_planner(logs)
    assert restarted.ranges(NOTHING_READ, end) == []
    following = restarted.latest_offsets(end, None)
    assert restarted.ranges(end, following) == [OffsetRange(ZERO, 10, 15)]


def test_a_stream_from_the_beginning() -> None:
    logs = LogsInMemory({ZERO: (3, 10)})
    planner = stream_planner(logs, startingOffsets="earliest")
    end = planner.latest_offsets(NOTHING_READ, None)
    assert planner.ranges(NOTHING_READ, end) == [OffsetRange(ZERO, 3, 10)]
    assert planner.latest_offsets(end, None) == end


def test_a_limit_counts_from_the_start_of_the_micro_batch() -> None:
    logs = LogsInMemory({ZERO: (3, 10)})
    planner = stream_planner(logs, startingOffsets="earliest")
    first = planner.latest_offsets(NOTHING_READ, 2)
    assert first == {"t": {"0": 5}}
    assert planner.latest_offsets(first, 2) == {"t": {"0": 7}}
    assert planner.listed_ends == {ZERO: 10}


def test_a_new_partition_is_read_from_its_first_record() -> None:
    logs = LogsInMemory({ZERO: (0, 10)})
    planner = stream_planner(logs)
    start = planner.latest_offsets(NOTHING_READ, None)
    logs.bounds[ONE] = (0, 4)
    end = planner.latest_offsets(start, None)
    assert planner.ranges(start, end) == [OffsetRange(ONE, 0, 4)]
    assert logs.asked_for[-1] == {"t"}
    logs.bounds[ONE] = (2, 4)
    with pytest.raises(RecordsLost, match="t-1 begins at offset 2, but offset 0 was next"):
        planner.ranges(start, end)


def test_a_stream_of_a_pattern_without_topics_reads_the_first_one_from_its_first_record() -> None:
    logs = LogsInMemory()
    options = {name: value for name, value in OPTIONS.items() if name != "subscribe"}
    planner = SourcePlanner(SourceOptions.for_stream(options | {"subscribePattern": "t.*"}), logs)
    with pytest.raises(AssertionError, match="the topic is missing"):
        planner.latest_offsets(NOTHING_READ, None)
    logs.bounds[ZERO] = (0, 10)
    assert planner.latest_offsets({}, None) == {"t": {"0": 10}}
    assert planner.ranges({}, {"t": {"0": 10}}) == [OffsetRange(ZERO, 0, 10)]


def test_a_log_that_is_gone_or_shorter_is_an_error_unless_the_loss_is_accepted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs = LogsInMemory({ZERO: (1, 4)})
    start = {"t": {"0": 10, "1": 5}}
    with pytest.raises(RecordsLost) as raised:
        stream_planner(logs).latest_offsets(start, None)
    assert raised.value.losses == (
        "t-1 does not exist any more; offset 5 was next",
        "t-0 ends at offset 4, but offset 10 was next",
    )
    assert "set failOnDataLoss to false" in str(raised.value)
    planner = stream_planner(logs, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        end = planner.latest_offsets(start, None)
        assert end == {"t": {"0": 4}}
        assert planner.ranges(start, end) == [OffsetRange(ZERO, 1, 4)]
    assert "Records are lost: t-1 does not exist any more" in caplog.text


@pytest.mark.parametrize("start", [NOTHING_READ, {}])
def test_available_now_does_not_succeed_without_its_topic(start: OffsetsJson) -> None:
    planner = stream_planner(LogsInMemory())
    planner.stop_at_present_ends()
    with pytest.raises(AssertionError, match="the topic is missing"):
        planner.latest_offsets(start, None)


def test_available_now_ends_at_the_present_ends() -> None:
    logs = LogsInMemory({ZERO: (0, 10)})
    planner = stream_planner(logs, startingOffsets="earliest")
    planner.stop_at_present_ends()
    logs.bounds = {ZERO: (0, 20), ONE: (0, 5)}
    first = planner.latest_offsets(NOTHING_READ, 6)
    assert first == {"t": {"0": 6}}
    assert planner.latest_offsets(first, 6) == {"t": {"0": 10}}
    assert planner.latest_offsets({"t": {"0": 10}}, 6) == {"t": {"0": 10}}
