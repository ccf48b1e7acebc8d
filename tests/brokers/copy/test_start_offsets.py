"""Where copying starts: at a time, at given offsets; a started partition continues."""

from __future__ import annotations

import pytest

from sparkmirror.copy.job import StartMode, StartPosition
from sparkmirror.model import TopicPartition
from tests.support.copy.copy_flow import CopyFlow
from tests.support.kafka.batch_writer import BatchWriter, now_ms, numbered_records
from tests.support.kafka.partition_log import assert_copied

HOUR_MS = 3600 * 1000
BATCH = 10


@pytest.mark.parametrize(
    ("start", "begins"),
    [
        pytest.param(
            StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=-3 * HOUR_MS - 1),
            (10, 10),
            id="time",
        ),
        pytest.param(
            # Not at the beginning of a batch; the other partition is not mentioned.
            StartPosition(at=StartMode.OFFSETS, offsets={"TOPIC-0": 17}),
            (17, 0),
            id="offsets",
        ),
    ],
)
def test_new_partitions_start_where_the_job_says(
    flow: CopyFlow, topic: str, writer: BatchWriter, start: StartPosition, begins: tuple[int, int]
) -> None:
    """Timestamps are relative to the start of the test."""
    flow.create_topic(topic, 2)
    now = now_ms()
    every = [TopicPartition(topic, number) for number in range(2)]
    for hours in (4, 3, 2, 1):
        first, then = BATCH * (4 - hours), now - hours * HOUR_MS
        for partition in every:
            writer.write_batch(
                partition, numbered_records(range(first, first + BATCH), timestamp=then)
            )
    offsets = {key.replace("TOPIC", topic): at for key, at in start.offsets.items()}
    position = StartPosition(at=start.at, timestamp_ms=now + start.timestamp_ms, offsets=offsets)
    later = numbered_records(range(40, 60))
    with flow.harness(flow.job({topic: 2}, start=position)) as harness:
        harness.wait_for_snapshot(
            "leases", lambda seen: all(v.position >= 0 for v in seen.partitions.values())
        )
        for partition in every:
            writer.write_batch(partition, later)
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        harness.drain()
    for (source, target), begin in zip(flow.all_partition_logs(every), begins, strict=True):
        assert_copied(source.records[begin:], target)


def test_a_started_partition_continues_whatever_the_start_position_is(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    for start in (StartMode.EARLIEST, StartMode.LATEST):
        writer.write_batch(partition, numbered_records(range(20)))
        with flow.harness(flow.job({topic: 1}, start=StartPosition(at=start))) as harness:
            harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
            harness.drain()
    flow.assert_mirrored({topic: 1})
