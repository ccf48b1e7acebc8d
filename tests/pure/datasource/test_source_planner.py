"""Which offsets a batch and a micro-batch read, and that nothing is lost without a word."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from sparkmirror.datasource.offset_positions import PartitionOffsets
from sparkmirror.datasource.offset_ranges import OffsetRange
from sparkmirror.datasource.options import SourceOptions
from sparkmirror.datasource.source_planner import SourcePlanner
from sparkmirror.datasource.stream_offsets import NOTHING_READ, OffsetJson
from sparkmirror.datasource.subscription import SubscribedPartitions
from sparkmirror.errors import ConfigError, RecordsLost
from sparkmirror.model import TopicPartition

OPTIONS = {"kafka.bootstrap.servers": "one:9092", "subscribe": "t"}
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


@dataclass
class LogsInMemory:
    """The first offset and the end of each partition; record n has the time 1000 n."""

    bounds: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    former_ends: dict[TopicPartition, int] = field(default_factory=dict)
    """What a former leader answers, unless it is asked again."""
    cluster: str = "one:9092"
    expected: list[set[TopicPartition]] = field(default_factory=list)

    def partitions(
        self, expected: Collection[TopicPartition] = (), *, is_recent: bool = False
    ) -> SubscribedPartitions:
        self.expected.append(set(expected))
        return SubscribedPartitions(partitions=sorted(self.bounds), topic_ids=dict(self.topic_ids))

    def require_named(self, partitions: Collection[TopicPartition]) -> None:
        assert partitions, "the topic is missing"

    def earliest(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        return {p: self.bounds[p][0] for p in partitions if p in self.bounds}

    def latest(
        self, partitions: Iterable[TopicPartition], read: Mapping[TopicPartition, int] | None = None
    ) -> PartitionOffsets:
        former = {} if read else self.former_ends
        return {p: former.get(p, self.bounds[p][1]) for p in partitions if p in self.bounds}

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        found = {p: -(-time // 1000) for p, time in times.items()}
        return {p: at if at < self.bounds[p][1] else None for p, at in found.items()}


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


def test_nothing_is_read_from_behind_the_end_of_a_log() -> None:
    logs = LogsInMemory({ZERO: (3, 10)})
    start = {"startingOffsets": '{"t": {"0": 12}}'}
    sentence = "t-0 ends at offset 10, but offset 12 was next"
    with pytest.raises(RecordsLost, match=sentence):
        batch_ranges(logs, **start)
    assert batch_ranges(logs, failOnDataLoss="false", **start) == []
    with pytest.raises(RecordsLost, match=sentence):
        stream_planner(logs, **start).ranges(NOTHING_READ, {"t": {"0": 10}})
    planner = stream_planner(logs, failOnDataLoss="false", **start)
    end = planner.latest_offsets(NOTHING_READ, None)
    assert planner.ranges(NOTHING_READ, end) == []


def test_a_batch_that_ends_before_it_starts_is_refused() -> None:
    logs = LogsInMemory({ZERO: (0, 10)})
    options = {"startingOffsets": '{"t": {"0": 8}}', "endingOffsets": '{"t": {"0": 4}}'}
    with pytest.raises(ConfigError, match="endingOffsets is before startingOffsets in t-0"):
        batch_ranges(logs, failOnDataLoss="false", **options)


def test_a_batch_without_one_of_its_partitions_is_an_error() -> None:
    """Metadata lists the partition; when its end is asked for, it is deleted."""

    class DeletedMeanwhile(LogsInMemory):
        def partitions(
            self, expected: Collection[TopicPartition] = (), *, is_recent: bool = False
        ) -> SubscribedPartitions:
            return SubscribedPartitions(partitions=[ZERO, ONE])

    logs = DeletedMeanwhile({ZERO: (0, 10)})
    with pytest.raises(RecordsLost, match="t-1 does not exist any more"):
        batch_ranges(logs)
    assert batch_ranges(logs, failOnDataLoss="false") == [OffsetRange(ZERO, 0, 10)]


def test_a_batch_reads_between_times() -> None:
    logs = LogsInMemory({ZERO: (0, 10), ONE: (0, 20)})
    times = {"startingTimestamp": "4000", "endingTimestamp": "12000"}
    expected = [OffsetRange(ZERO, 4, 10), OffsetRange(ONE, 4, 12)]
    assert batch_ranges(logs, **times) == expected
    by_partition = {
        "startingOffsetsByTimestamp": '{"t": {"0": 3001, "1": 4000}}',
        "startingOffsets": "ignored beside a time",
        "endingOffsetsByTimestamp": '{"t": {"0": 99000, "1": 12000}}',
    }
    assert batch_ranges(logs, **by_partition) == expected
    reversed_times = {"startingTimestamp": "8000", "endingTimestamp": "4000"}
    assert batch_ranges(logs, **reversed_times) == []


def test_a_starting_time_behind_the_last_record_is_an_error_or_the_end() -> None:
    logs = LogsInMemory({ZERO: (0, 10)})
    late = {"startingTimestamp": "50000"}
    with pytest.raises(ConfigError, match="t-0 has no record at or after the starting time"):
        stream_planner(logs, **late).latest_offsets(NOTHING_READ, None)
    late["startingOffsetsByTimestampStrategy"] = "latest"
    end = stream_planner(logs, **late).latest_offsets(NOTHING_READ, None)
    assert end == {"t": {"0": 10}}
    logs.bounds[ZERO] = (0, 99)
    restarted = stream_planner(logs, **late)
    assert restarted.ranges(NOTHING_READ, end) == [], "the checkpoint has decided"


def test_a_task_reads_no_more_offsets_than_allowed() -> None:
    logs = LogsInMemory({ZERO: (0, 10), ONE: (0, 3)})
    found = batch_ranges(logs, maxRecordsPerPartition="4")
    assert [(one.start, one.end) for one in found] == [(0, 3), (3, 6), (6, 10), (0, 3)]


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
    assert logs.expected[-1] == {ZERO}
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
        "t-0 ends at offset 4, but offset 10 was next",
        "t-1 does not exist any more; offset 5 was next",
    )
    assert "set failOnDataLoss to false" in str(raised.value)
    planner = stream_planner(logs, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        planner.latest_offsets(start, None)
    assert "Records are lost: t-1 does not exist any more" in caplog.text


def test_a_truncated_log_is_not_read_again() -> None:
    """With failOnDataLoss=false reading goes on at its end, as in Spark's own source."""
    logs = LogsInMemory({ZERO: (1, 4)})
    planner = stream_planner(logs, failOnDataLoss="false")
    start = {"t": {"0": 10}}
    end = planner.latest_offsets(start, None)
    assert end == {"t": {"0": 4}}
    assert planner.ranges(start, end) == []
    logs.bounds[ZERO] = (1, 6)
    following = planner.latest_offsets(end, None)
    assert planner.ranges(end, following) == [OffsetRange(ZERO, 4, 6)]


@pytest.mark.parametrize("available_now", [False, True])
def test_the_answer_of_a_former_leader_is_not_taken_for_a_loss(available_now: bool) -> None:
    logs = LogsInMemory({ZERO: (0, 12)}, former_ends={ZERO: 4})
    planner = stream_planner(logs)
    if available_now:
        planner.stop_at_present_ends()
    assert planner.latest_offsets({"t": {"0": 10}}, None) == {"t": {"0": 12}}


def test_a_partition_that_is_known_again_is_read_on_and_not_from_its_first_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs = LogsInMemory({ZERO: (0, 10)})
    planner = stream_planner(logs, failOnDataLoss="false")
    start = {"t": {"0": 10, "1": 5}}
    end = planner.latest_offsets(start, None)
    assert end == start
    assert planner.latest_offsets(end, None) == end
    assert logs.expected[-1] == {ZERO}, "a partition that is reported as gone is not waited for"
    assert caplog.text.count("t-1 does not exist any more") == 1
    logs.bounds[ONE] = (0, 8)
    back = planner.latest_offsets(end, None)
    assert planner.ranges(end, back) == [OffsetRange(ONE, 5, 8)]


def test_a_topic_that_was_created_again_is_an_error_or_read_from_its_first_record() -> None:
    """Also if the new log is longer than the old one: its offsets look fine."""
    logs = LogsInMemory({ZERO: (0, 10)}, topic_ids={"t": "A"})
    planner = stream_planner(logs, startingOffsets="earliest")
    start = planner.latest_offsets(NOTHING_READ, None)
    assert start == {"t": {"0": 10}, "topic ids": {"t": "A"}}
    logs.topic_ids, logs.bounds = {"t": "B"}, {ZERO: (0, 30)}
    sentence = "the topic of t-0 was deleted and created again; offset 10 was next"
    with pytest.raises(RecordsLost, match=sentence):
        planner.latest_offsets(start, None)
    lenient = stream_planner(logs, failOnDataLoss="false")
    end = lenient.latest_offsets(start, 20)
    assert end == {"t": {"0": 20}, "topic ids": {"t": "B"}}
    assert lenient.ranges(start, end) == [OffsetRange(ZERO, 0, 20)]
    planned = {"t": {"0": 15}, "topic ids": {"t": "A"}}
    with pytest.raises(RecordsLost, match="created again"):
        stream_planner(logs).ranges(start, planned)
    assert stream_planner(logs, failOnDataLoss="false").ranges(start, planned) == []


def test_a_partition_that_is_not_subscribed_any_more_is_named_and_not_waited_for() -> None:
    logs = LogsInMemory({ZERO: (0, 10)})
    start = {"t": {"0": 10}, "u": {"0": 3}}
    with pytest.raises(RecordsLost, match="u-0 is not subscribed any more; offset 3 was next"):
        stream_planner(logs).latest_offsets(start, None)
    assert logs.expected[-1] == {ZERO}
    lenient = stream_planner(logs, failOnDataLoss="false")
    assert lenient.latest_offsets(start, None) == {"t": {"0": 10}}


def test_a_limit_does_not_count_deleted_offsets() -> None:
    logs = LogsInMemory({ZERO: (1_000_000, 1_000_500)})
    planner = stream_planner(logs, failOnDataLoss="false")
    start = {"t": {"0": 7}}
    end = planner.latest_offsets(start, 100)
    assert planner.ranges(start, end) == [OffsetRange(ZERO, 1_000_000, 1_000_100)]


@pytest.mark.parametrize("start", [NOTHING_READ, {}])
def test_available_now_does_not_succeed_without_its_topic(start: OffsetJson) -> None:
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
    assert planner.listed_ends == {ZERO: 10}
