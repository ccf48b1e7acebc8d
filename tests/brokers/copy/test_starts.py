"""Where copying begins: at an end, at a time, at given offsets, and never anew once it began."""

from __future__ import annotations

import pytest

from sparkmirror.copy.job import Start, StartAt
from sparkmirror.model import TopicPartition
from tests.support.flows import Flow
from tests.support.logs import assert_copied
from tests.support.writing import Writer, now_ms, numbered

HOUR_MS = 3600 * 1000
BATCH = 10


@pytest.mark.parametrize(
    ("start", "begins"),
    [
        pytest.param(Start(at=StartAt.EARLIEST), (0, 0), id="earliest"),
        pytest.param(Start(at=StartAt.LATEST), (40, 40), id="latest"),
        pytest.param(
            Start(at=StartAt.TIMESTAMP, timestamp_ms=-3 * HOUR_MS - 1),
            (10, 10),
            id="time",
        ),
        pytest.param(Start(at=StartAt.TIMESTAMP, timestamp_ms=HOUR_MS), (40, 40), id="late-time"),
        pytest.param(
            # Not at the beginning of a batch; the other partition is not mentioned.
            Start(at=StartAt.OFFSETS, offsets={"TOPIC-0": 17}),
            (17, 0),
            id="offsets",
        ),
    ],
)
def test_new_partitions_begin_where_the_job_says(
    flow: Flow, topic: str, writer: Writer, start: Start, begins: tuple[int, int]
) -> None:
    """Times are counted from when the test begins: hours may have passed since it was collected."""
    flow.create(topic, 2)
    now = now_ms()
    every = [TopicPartition(topic, number) for number in range(2)]
    for hours in (4, 3, 2, 1):
        first, then = BATCH * (4 - hours), now - hours * HOUR_MS
        for partition in every:
            writer.write(partition, numbered(range(first, first + BATCH), timestamp=then))
    offsets = {key.replace("TOPIC", topic): at for key, at in start.offsets.items()}
    told = Start(at=start.at, timestamp_ms=now + start.timestamp_ms, offsets=offsets)
    later = numbered(range(40, 60))
    with flow.stage(flow.job({topic: 2}, start=told)) as stage:
        stage.wait("leases", lambda seen: all(v.position >= 0 for v in seen.partitions.values()))
        for partition in every:
            writer.write(partition, later)
        stage.wait_until_caught_up(flow.ends({topic: 2}))
        stage.drain()
    for (source, target), begin in zip(flow.all_logs(every), begins, strict=True):
        assert_copied(source.records[begin:], target)


def test_what_began_goes_on_wherever_new_partitions_would_begin(
    flow: Flow, topic: str, writer: Writer
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    for start in (StartAt.EARLIEST, StartAt.LATEST):
        writer.write(partition, numbered(range(20)))
        with flow.stage(flow.job({topic: 1}, start=Start(at=start))) as stage:
            stage.wait_until_caught_up(flow.ends({topic: 1}))
            stage.drain()
    flow.assert_mirrored({topic: 1})
