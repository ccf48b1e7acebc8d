"""Clocks that are a day off: the mirror compares no clock with that of another machine."""

from __future__ import annotations

import pytest

from sparkmirror.model import TopicPartition
from tests.support.copy.copy_flow import CopyFlow
from tests.support.copy.fault_scenario import SLOW_COPY, create_mixed_topic
from tests.support.copy.harness_process import HarnessProcess
from tests.support.kafka.batch_writer import BatchWriter, now_ms, numbered_records

DAY_MS = 24 * 3600 * 1000


@pytest.mark.parametrize(
    "ahead_ms",
    [
        pytest.param(DAY_MS, id="ahead"),
        pytest.param(-DAY_MS, id="behind", marks=pytest.mark.soak),
    ],
)
def test_a_mirror_whose_clock_is_wrong_copies_and_is_taken_over(
    flow: CopyFlow, topic: str, writer: BatchWriter, ahead_ms: int
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    job = flow.job(topics, tasks=2, settings=SLOW_COPY, flush_interval_s=0.5)
    with HarnessProcess(job, clock_ahead_ms=ahead_ms) as skewed:
        skewed.wait_until_copied(300)
    with flow.harness(job) as harness:
        harness.wait_for_event("takeover")
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        assert {one.kind for one in harness.snapshot.events} == {"takeover"}
        flow.assert_mirrored(topics, fences=1, harness=harness)


def test_times_of_producers_a_day_behind_and_of_today_arrive_as_they_are(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    for number, time_ms in enumerate((now_ms(), now_ms() - DAY_MS, now_ms(), now_ms() - DAY_MS)):
        records = numbered_records(range(100 * number, 100 * number + 100), timestamp=time_ms)
        writer.write_batch(partition, records)
    with flow.harness(flow.job({topic: 1})) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        harness.drain()
        assert harness.snapshot.events == ()
        flow.assert_mirrored({topic: 1}, harness=harness)
