"""Brokers that stop, die and freeze: every record arrives once, in order."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.model import TopicPartition
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S, CopyHarness
from tests.support.copy.fault_scenario import SLOW_COPY, create_mixed_topic, has_copied_records
from tests.support.kafka.batch_writer import (
    BatchWriter,
    numbered_records,
)
from tests.support.kafka.partition_log import log_start_and_end
from tests.support.kafka.wire_copier import make_router
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

SHORT_TIMEOUTS = {"fetch_timeout_s": 2.0, "produce_timeout_s": 3.0}
FROZEN_S = 4.0
"""Longer than both timeouts: every open request is lost."""


def test_the_only_broker_of_the_target_may_die_and_return(
    flow: CopyFlow, topic: str, writer: BatchWriter, target: Cluster
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        target.kill_broker(1)
        try:
            wait_for_reason(harness, "target: ")
        finally:
            target.start_broker(1)
        finish_without_events(flow, harness, topics)


def wait_for_reason(harness: CopyHarness, text: str) -> None:
    harness.wait_for_snapshot(
        "the reason to be shown",
        lambda seen: any(text in one.reason for one in seen.partitions.values()),
    )


def finish_without_events(flow: CopyFlow, harness: CopyHarness, topics: dict[str, int]) -> None:
    """Copy the rest at full speed, and compare every record."""
    harness.conductor.set_rate(0)
    harness.wait_until_caught_up(flow.source_end_offsets(topics))
    harness.drain()
    flow.assert_mirrored(topics, fences=0, harness=harness)
    assert harness.snapshot.events == (), "no event for the operator"


def test_while_the_source_is_stopped_a_living_task_waits_and_a_dead_one_is_fenced_once(
    flow: CopyFlow, topic: str, writer: BatchWriter, source: Cluster
) -> None:
    """Two flows in one outage: the task of the second one dies, and is fenced once."""
    topics = create_mixed_topic(flow, topic, writer)
    other, partition = replace(flow, name=f"{flow.name}.dead"), TopicPartition(f"{topic}.dead", 0)
    other.create_topic(partition.topic)
    writer.write_batches(partition, numbered_records(range(1000), size=1000), batch=25)
    wanted = 1000 + 1  # records, and one fence
    # The task reports almost nothing, so that the takeover has something to find.
    quiet = {"report_interval_s": 3600.0, "lease_timeout_s": 3600.0, "bytes_per_s": 50_000}
    dying_job = other.job({partition.topic: 1}, settings=quiet, task_timeout_s=3600.0)
    with (
        flow.harness(flow.job(topics, settings=SLOW_COPY)) as living,
        other.harness(dying_job) as dying,
    ):
        living.wait_for_snapshot("copying to begin", has_copied_records)
        wait_until(lambda: _target_end_offset(other, partition) > 100, "something to be copied")
        source.stop_broker(1)
        try:
            dying.kill(0)
            wait_for_reason(dying, "source: ")
            wait_for_reason(living, "source: ")
        finally:
            source.start_broker(1)
        finish_without_events(flow, living, topics)
        dying.conductor.set_rate(0)
        wait_until(
            lambda: _target_end_offset(other, partition) == wanted,
            "everything to be copied",
            HARNESS_TIMEOUT_S,
        )
        dying.drain()
        other.assert_mirrored({partition.topic: 1}, fences=1, harness=dying)


def _target_end_offset(flow: CopyFlow, partition: TopicPartition) -> int:
    router = make_router(flow.target)
    try:
        return log_start_and_end(
            router, partition._replace(topic=remote_topic_name(partition.topic))
        )[1]
    finally:
        router.close()


def test_frozen_brokers_are_waited_for(
    flow: CopyFlow, topic: str, writer: BatchWriter, one_broker_clusters: tuple[Cluster, Cluster]
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    with flow.harness(flow.job(topics, settings=SLOW_COPY | SHORT_TIMEOUTS)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        for cluster in one_broker_clusters:
            cluster.pause_broker(1)
        frozen_at = time.monotonic()
        try:
            wait_until(lambda: time.monotonic() - frozen_at > FROZEN_S, "answers to be overdue", 60)
        finally:
            for cluster in one_broker_clusters:
                cluster.resume_broker(1)
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        flow.assert_mirrored(topics, fences=0, harness=harness)
