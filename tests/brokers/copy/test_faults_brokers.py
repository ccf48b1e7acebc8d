"""Brokers that stop, die and freeze: every record arrives once, in order."""

from __future__ import annotations

import logging
import time

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_actions import CLUSTER_ACTIONS
from sparkmirror.model import TopicPartition
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S
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


@pytest.mark.parametrize(
    ("side", "verb"),
    [("target", "kill"), ("source", "stop")],
    ids=["target-dies", "source-stops"],
)
def test_the_only_broker_of_a_cluster_may_go_down_and_return(
    flow: CopyFlow,
    topic: str,
    writer: BatchWriter,
    one_broker_clusters: tuple[Cluster, Cluster],
    side: str,
    verb: str,
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    cluster = one_broker_clusters[side == "target"]
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        CLUSTER_ACTIONS[verb].run_on_broker(cluster, 1)
        try:
            harness.wait_for_snapshot(
                "the reason to be shown",
                lambda seen: any(f"{side}: " in one.reason for one in seen.partitions.values()),
            )
        finally:
            cluster.start_broker(1)
        harness.conductor.set_rate(0)
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        flow.assert_mirrored(topics, fences=0, harness=harness)
        assert harness.snapshot.events == (), "no event for the operator"


def test_a_task_that_dies_while_the_source_is_down_is_fenced_once(
    flow: CopyFlow, topic: str, writer: BatchWriter, one_broker_clusters: tuple[Cluster, Cluster]
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    writer.write_batches(partition, numbered_records(range(1000), size=1000), batch=10)
    wanted = 1000 + 1  # records, and one fence
    # The task reports almost nothing, so that the takeover has something to find.
    quiet = {"report_interval_s": 3600.0, "lease_timeout_s": 3600.0, "bytes_per_s": 50_000}
    with flow.harness(flow.job({topic: 1}, settings=quiet, task_timeout_s=3600.0)) as harness:
        wait_until(lambda: _target_end_offset(flow, partition) > 100, "something to be copied")
        one_broker_clusters[0].stop_broker(1)
        try:
            harness.kill(0)
            harness.wait_for_snapshot(
                "it to be held",
                lambda seen: "source: " in seen.partitions[str(partition)].reason,
            )
        finally:
            one_broker_clusters[0].start_broker(1)
        harness.conductor.set_rate(0)
        wait_until(
            lambda: _target_end_offset(flow, partition) == wanted,
            "everything to be copied",
            HARNESS_TIMEOUT_S,
        )
        harness.drain()
        flow.assert_mirrored({topic: 1}, fences=1, harness=harness)


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
