"""Tasks and drivers that die, sleep or double: every record arrives once, in order."""

from __future__ import annotations

import itertools
import signal
import time

import pytest

from sparkmirror.copy.fence import Overtaken
from sparkmirror.copy.job import Job
from sparkmirror.engine.ledger import OffsetsTopicLedger
from sparkmirror.errors import RequestRefused
from sparkmirror.model import TopicPartition
from sparkmirror.wire.append import append_batch
from sparkmirror.wire.forward import Producer, forward
from sparkmirror.wire.header import read_header
from sparkmirror.wire.records import build
from tests.support.faults import SLOWLY, everything, prepared, something
from tests.support.flows import Flow, remote_name
from tests.support.stage import PATIENCE_S, Stage
from tests.support.stage_process import StageProcess
from tests.support.waiting import wait_until
from tests.support.writing import MIXED, Writer, numbered

BYTES_PER_S = 500_000


def finish(flow: Flow, stage: Stage, topics: dict[str, int], fences: int) -> None:
    """Copy the rest at full speed, compare, and count: fences are no records."""
    stage.conductor.set_rate(0)
    stage.wait_until_caught_up(flow.ends(topics))
    stage.drain()
    flow.assert_mirrored(topics, fences=fences, stage=stage)
    assert stage.snapshot.records == records_of(flow, topics)


def test_a_killed_task_is_replaced(flow: Flow, topic: str, writer: Writer) -> None:
    topics = prepared(flow, topic, writer)
    with flow.stage(flow.job(topics, tasks=2, settings=SLOWLY)) as stage:
        stage.wait("every partition to be copied", everything)
        stage.kill(0)
        stage.wait_for_event("takeover")
        finish(flow, stage, topics, fences=1)


def test_all_tasks_may_be_killed_again_and_again(flow: Flow, topic: str, writer: Writer) -> None:
    topics = prepared(flow, topic, writer)
    with flow.stage(flow.job(topics, tasks=2, settings=SLOWLY)) as stage:
        for turn in range(2):
            stage.wait("every partition to be copied", everything)
            stage.kill(0)
            stage.kill(1)
            stage.wait_for_event("takeover", times=MIXED * (turn + 1))
        finish(flow, stage, topics, fences=2)


def test_a_killed_driver_is_replaced_however_little_the_ledger_knows(
    flow: Flow, topic: str, writer: Writer
) -> None:
    topics = prepared(flow, topic, writer)
    job = flow.job(topics, tasks=2, settings=SLOWLY)
    for records in (300, 500):
        with StageProcess(job) as doomed:
            doomed.wait_until_copied(records)
            doomed.kill()
    with flow.stage(job) as stage:
        stage.wait_for_event("takeover")
        assert all(one.kind == "takeover" for one in stage.snapshot.events)
        finish(flow, stage, topics, fences=2)


def test_a_task_that_slept_through_its_replacement_writes_nothing(
    flow: Flow, topic: str, writer: Writer
) -> None:
    topics = prepared(flow, topic, writer)
    with flow.stage(flow.job(topics, settings=SLOWLY)) as stage:
        stage.wait("copying to begin", something)
        stage.freeze(0)
        stage.give_up_silent()
        zombie = stage.start_beside(0)
        copied = stage.snapshot.records
        stage.wait("its successor to copy", lambda seen: seen.records > copied)
        zombie.send_signal(signal.SIGCONT)
        wait_until(lambda: zombie.poll() is not None, "the zombie to end by itself", PATIENCE_S)
        assert zombie.returncode != 0, "it was given up, and says so"
        finish(flow, stage, topics, fences=1)


def test_a_fence_refuses_whatever_the_last_owner_still_sends(
    flow: Flow, topic: str, writer: Writer
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create(topic)
    writer.write(partition, numbered(range(100)))
    job = flow.job({topic: 1})
    with flow.stage(job) as stage:
        stage.wait_until_caught_up(flow.ends({topic: 1}))
        ledger = OffsetsTopicLedger.of(job)
        entry = ledger.load()[partition]
        ledger.close()
        assert entry.ours
        stage.kill(0)
        stage.wait_for_event("takeover")
        late = memoryview(build(numbered([100])))
        identity = entry.ours.identity
        producer = Producer(producer_id=identity.producer_id, epoch=identity.producer_epoch)
        buffers = forward(read_header(late), late, producer, identity.sequence(100))
        zombie = Writer(flow.target)
        with pytest.raises(RequestRefused, match="INVALID_PRODUCER_EPOCH"):
            append_batch(zombie.router, TopicPartition(remote_name(topic), 0), buffers)
        zombie.close()
        finish(flow, stage, {topic: 1}, fences=1)


def test_a_task_that_slept_comes_back_by_itself(flow: Flow, topic: str, writer: Writer) -> None:
    topics = prepared(flow, topic, writer)
    with flow.stage(flow.job(topics, settings=SLOWLY)) as stage:
        stage.wait("copying to begin", something)
        stage.freeze(0)
        stage.give_up_silent()
        stage.thaw(0)
        finish(flow, stage, topics, fences=1)


def test_a_second_driver_takes_over_and_the_first_one_stops(
    flow: Flow, topic: str, writer: Writer
) -> None:
    topics = prepared(flow, topic, writer)
    job = flow.job(topics, settings=SLOWLY)
    with flow.stage(job) as first:
        first.wait("copying to begin", something)
        numbers = itertools.count(100_000)

        def is_overtaken() -> bool:
            """It notices as soon as it has something to write."""
            writer.write(TopicPartition(topic, 0), numbered([next(numbers)]))
            return first.conductor.failure() is not None

        with flow.stage(job) as second:
            wait_until(is_overtaken, "the first to stop", PATIENCE_S)
            assert isinstance(first.conductor.failure(), Overtaken)
            finish(flow, second, topics, fences=1)


def test_a_clean_end_costs_nothing(flow: Flow, topic: str, writer: Writer) -> None:
    topics = prepared(flow, topic, writer)
    job = flow.job(topics, tasks=2, settings=SLOWLY)
    with flow.stage(job) as stage:
        stage.wait("copying to begin", something)
        stage.drain()
    with flow.stage(job) as stage:
        stage.wait("every partition to be copied", everything)
        stage.conductor.end_epoch()
        stage.wait_for_attempts(1)
        finish(flow, stage, topics, fences=0)
        assert stage.snapshot.events == ()


def test_the_rate_limit_is_kept(flow: Flow, topic: str, writer: Writer) -> None:
    """However late we look: all of it is counted, from before the first byte was copied."""
    topics = prepared(flow, topic, writer)
    began = time.monotonic()
    with flow.stage(flow.job(topics, settings={"bytes_per_s": BYTES_PER_S})) as stage:
        stage.wait_until_caught_up(flow.ends(topics))
        took_s = time.monotonic() - began
        copied = stage.snapshot.bytes
        assert copied > 5 * BYTES_PER_S
        # What a second allows may come at once in the beginning, and the last answer is overdrawn.
        assert copied < BYTES_PER_S * (took_s + 1.5)
        finish(flow, stage, topics, fences=0)


def records_of(flow: Flow, topics: dict[str, int]) -> int:
    """How many records there are to copy."""
    job: Job = flow.job(topics)
    return sum(len(source.wanted) for source, _ in flow.all_logs(job.tasks[0]))
