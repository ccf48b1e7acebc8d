"""Clocks that are a day off: nothing of ours compares its own with that of another machine."""

from __future__ import annotations

import pytest

from sparkmirror.model import TopicPartition
from tests.support.faults import SLOWLY, prepared
from tests.support.flows import Flow
from tests.support.stage_process import StageProcess
from tests.support.writing import Writer, now_ms, numbered

DAY_MS = 24 * 3600 * 1000
A_DAY_OFF = pytest.mark.parametrize("ahead_ms", [DAY_MS, -DAY_MS], ids=["ahead", "behind"])


@A_DAY_OFF
def test_a_mirror_whose_clock_is_wrong_copies_and_is_taken_over(
    flow: Flow, topic: str, writer: Writer, ahead_ms: int
) -> None:
    topics = prepared(flow, topic, writer)
    job = flow.job(topics, tasks=2, settings=SLOWLY, flush_every_s=0.5)
    with StageProcess(job, clock_ahead_ms=ahead_ms) as wrong:
        wrong.wait_until_copied(300)
    with flow.stage(job) as stage:
        stage.wait_for_event("takeover")
        stage.conductor.set_rate(0)
        stage.wait_until_caught_up(flow.ends(topics))
        stage.drain()
        assert {one.kind for one in stage.snapshot.events} == {"takeover"}
        flow.assert_mirrored(topics, fences=1, stage=stage)


def test_times_of_producers_a_day_behind_and_of_today_arrive_as_they_are(
    flow: Flow, topic: str, writer: Writer
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    for number, time_ms in enumerate((now_ms(), now_ms() - DAY_MS, now_ms(), now_ms() - DAY_MS)):
        records = numbered(range(100 * number, 100 * number + 100), timestamp=time_ms)
        writer.write(partition, records)
    with flow.stage(flow.job({topic: 1})) as stage:
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        stage.drain()
        assert stage.snapshot.events == ()
        flow.assert_mirrored({topic: 1}, stage=stage)
