"""Where copying begins: at an end, at a time, at given offsets, and never anew once it began."""

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
        pytest.param(StartPosition(at=StartMode.EARLIEST), (0, 0), id="earliest"),
        pytest.param(StartPosition(at=StartMode.LATEST), (40, 40), id="latest"),
        pytest.param(
            StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=-3 * HOUR_MS - 1),
            (10, 10),
            id="time",
        ),
        pytest.param(
            StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=HOUR_MS), (40, 40), id="late-time"
        ),
        pytest.param(
            # Not at the beginning of a batch; the other partition is not mentioned.
            StartPosition(at=StartMode.OFFSETS, offsets={"TOPIC-0": 17}),
            (17, 0),
            id="offsets",
        ),
    ],
)
def test_new_partitions_begin_where_the_job_says(
    flow: CopyFlow, topic: str, writer: BatchWriter, start: StartPosition, begins: tuple[int, int]
) -> None:
    """Times are counted from when the test begins: hours may have passed since it was collected."""
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
    told = StartPosition(at=start.at, timestamp_ms=now + start.timestamp_ms, offsets=offsets)
    later = numbered_records(range(40, 60))
    with flow.harness(flow.job({topic: 2}, start=told)) as stage:
        stage.wait_for_snapshot(
            "leases", lambda seen: all(v.position >= 0 for v in seen.partitions.values())
        )
        for partition in every:
            writer.write_batch(partition, later)
        stage.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        stage.drain()
    for (source, target), begin in zip(flow.all_partition_logs(every), begins, strict=True):
        assert_copied(source.records[begin:], target)


def test_what_began_goes_on_wherever_new_partitions_would_begin(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    for start in (StartMode.EARLIEST, StartMode.LATEST):
        writer.write_batch(partition, numbered_records(range(20)))
        with flow.harness(flow.job({topic: 1}, start=StartPosition(at=start))) as stage:
            stage.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
            stage.drain()
    flow.assert_mirrored({topic: 1})
