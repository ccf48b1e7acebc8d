"""Tasks and drivers that die, are suspended or start twice: every record arrives once, in order."""

from __future__ import annotations

import itertools
import signal
import time

import pytest

from sparkmirror.copy.driver.fencing.fence import DriverFenced
from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.errors import RequestRefused
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import build_batch
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_batch
from tests.brokers.copy.conftest import all_lanes, lanes
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S, CopyHarness
from tests.support.copy.fault_scenario import (
    SLOW_COPY,
    all_partitions_leased,
    create_mixed_topic,
    has_copied_records,
)
from tests.support.copy.harness_process import HarnessProcess
from tests.support.kafka.batch_writer import MIXED_PARTITIONS, BatchWriter, numbered_records
from tests.support.waiting import wait_until

BYTES_PER_S = 500_000


def drain_and_verify(
    flow: CopyFlow, harness: CopyHarness, topics: dict[str, int], fences: int
) -> None:
    """Copy the rest at full speed, compare, and count records (fences are none)."""
    harness.conductor.set_rate(0)
    harness.wait_until_caught_up(flow.source_end_offsets(topics))
    harness.drain()
    flow.assert_mirrored(topics, fences=fences, harness=harness)
    assert harness.snapshot.records == records_of(flow, topics)


@all_lanes
def test_all_tasks_may_be_killed_again_and_again(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    with flow.harness(flow.job(topics, tasks=2, settings=SLOW_COPY)) as harness:
        for turn in range(2):
            harness.wait_for_snapshot("every partition to be copied", all_partitions_leased)
            harness.kill(0)
            harness.kill(1)
            harness.wait_for_event("takeover", times=MIXED_PARTITIONS * (turn + 1))
        drain_and_verify(flow, harness, topics, fences=2)


@lanes
def test_a_killed_driver_is_replaced_although_the_ledger_is_old(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    job = flow.job(topics, tasks=2, settings=SLOW_COPY)
    for _ in range(2):
        with HarnessProcess(job) as killed:
            killed.wait_until_copied(200)
            killed.kill()
    with flow.harness(job) as harness:
        harness.wait_for_event("takeover")
        assert all(one.kind == "takeover" for one in harness.snapshot.events)
        drain_and_verify(flow, harness, topics, fences=2)


def test_a_suspended_task_that_was_replaced_writes_nothing(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        harness.suspend(0)
        harness.expire_silent_tasks()
        zombie = harness.start_duplicate_attempt(0)
        copied = harness.snapshot.records
        harness.wait_for_snapshot("its successor to copy", lambda seen: seen.records > copied)
        zombie.send_signal(signal.SIGCONT)
        wait_until(
            lambda: zombie.poll() is not None, "the zombie to end by itself", HARNESS_TIMEOUT_S
        )
        assert zombie.returncode != 0, "an aborted task ends with an error"
        drain_and_verify(flow, harness, topics, fences=1)


def test_a_fence_refuses_every_later_batch_of_the_last_owner(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    writer.write_batch(partition, numbered_records(range(100)))
    job = flow.job({topic: 1})
    with flow.harness(job) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        ledger = OffsetsTopicLedger.for_job(job)
        entry = ledger.load()[partition]
        ledger.close()
        assert entry.extension
        harness.kill(0)
        harness.wait_for_event("takeover")
        late = memoryview(build_batch(numbered_records([100])))
        identity = entry.extension.identity
        producer = BatchProducer(producer_id=identity.producer_id, epoch=identity.producer_epoch)
        buffers = forward_batch(read_header(late), late, producer, identity.sequence_for(100))
        zombie = BatchWriter(flow.target)
        with pytest.raises(RequestRefused, match="INVALID_PRODUCER_EPOCH"):
            append_batch(zombie.router, TopicPartition(remote_topic_name(topic), 0), buffers)
        zombie.close()
        drain_and_verify(flow, harness, {topic: 1}, fences=1)


@pytest.mark.soak
def test_a_suspended_task_is_replaced_after_it_resumes(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        harness.suspend(0)
        harness.expire_silent_tasks()
        harness.resume(0)
        drain_and_verify(flow, harness, topics, fences=1)


def test_a_second_driver_takes_over_and_the_first_one_stops(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    job = flow.job(topics, settings=SLOW_COPY)
    with flow.harness(job) as first:
        first.wait_for_snapshot("copying to begin", has_copied_records)
        numbers = itertools.count(100_000)

        def is_replaced() -> bool:
            """It notices when it writes next."""
            writer.write_batch(TopicPartition(topic, 0), numbered_records([next(numbers)]))
            return first.conductor.failure() is not None

        with flow.harness(job) as second:
            wait_until(is_replaced, "the first to stop", HARNESS_TIMEOUT_S)
            assert isinstance(first.conductor.failure(), DriverFenced)
            drain_and_verify(flow, second, topics, fences=1)


def test_a_clean_end_costs_nothing(flow: CopyFlow, topic: str, writer: BatchWriter) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    job = flow.job(topics, tasks=2, settings=SLOW_COPY)
    with flow.harness(job) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        harness.drain()
    with flow.harness(job) as harness:
        harness.wait_for_snapshot("every partition to be copied", all_partitions_leased)
        harness.conductor.end_epoch()
        harness.wait_for_attempts(1)
        drain_and_verify(flow, harness, topics, fences=0)
        assert harness.snapshot.events == ()


def test_the_rate_limit_is_kept(flow: CopyFlow, topic: str, writer: BatchWriter) -> None:
    """Counts everything, from before the first byte was copied."""
    topics = create_mixed_topic(flow, topic, writer)
    began = time.monotonic()
    with flow.harness(flow.job(topics, settings={"bytes_per_s": BYTES_PER_S})) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        took_s = time.monotonic() - began
        copied = harness.snapshot.bytes
        assert copied > 5 * BYTES_PER_S
        # What a second allows may come at once in the beginning, and the last answer is overdrawn.
        assert copied < BYTES_PER_S * (took_s + 1.5)
        drain_and_verify(flow, harness, topics, fences=0)


def records_of(flow: CopyFlow, topics: dict[str, int]) -> int:
    """The number of records to copy."""
    job: CopyJob = flow.job(topics)
    logs = flow.all_partition_logs(job.tasks[0])
    return sum(len(flow.expected_records(source)) for source, _ in logs)
