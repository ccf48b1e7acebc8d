"""Brokers that stop, die and freeze: every record arrives once, in order."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.model import TopicPartition
from tests.brokers.copy.conftest import flow_between
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S, CopyHarness
from tests.support.copy.fault_scenario import SLOW_COPY, create_mixed_topic, has_copied_records
from tests.support.copy.partition_views import is_caught_up, wait_for_views
from tests.support.copy.transform_chains import DROP_AND_MASK
from tests.support.kafka.batch_writer import (
    BatchWriter,
    numbered_records,
)
from tests.support.kafka.partition_log import log_start_and_end
from tests.support.kafka.wire_copier import make_router
from tests.support.one_outage import OutageResult, run_in_one_outage
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

SHORT_TIMEOUTS = {"fetch_timeout_s": 2.0, "produce_timeout_s": 3.0}
FROZEN_S = 4.0
"""Longer than both timeouts: every open request is lost."""


@pytest.fixture(scope="module")
def dead_target(one_broker_clusters: tuple[Cluster, Cluster]) -> OutageResult:
    """An outage of the target's only broker. The copy that is to be interrupted begins last."""
    source, target = one_broker_clusters
    name = f"dead-target-{secrets.token_hex(3)}"
    scenarios = {
        "reasons": reasons_of_two_flows(flow_between(f"{name}.reasons", source, target), target),
        "copy": interrupted_copy(flow_between(f"{name}.copy", source, target)),
        "transform": interrupted_copy(
            flow_between(f"{name}.transform", source, target, transforms=DROP_AND_MASK)
        ),
    }
    return run_in_one_outage(scenarios, killed_broker(target))


@contextmanager
def killed_broker(cluster: Cluster) -> Iterator[None]:
    """Kill the only broker of a cluster, and start it at the end of the block."""
    cluster.kill_broker(1)
    try:
        yield
    finally:
        cluster.start_broker(1)


def test_the_only_broker_of_the_target_may_die_and_return(dead_target: OutageResult) -> None:
    dead_target.check("copy")
    dead_target.check("transform")


def test_an_unreachable_target_is_a_reason_with_alias_address_and_cause(
    dead_target: OutageResult,
) -> None:
    """One flow has nothing to copy during the outage, the other one has."""
    dead_target.check("reasons")


def interrupted_copy(flow: CopyFlow) -> Iterator[None]:
    with closing(BatchWriter(flow.source)) as writer:
        topics = create_mixed_topic(flow, flow.name, writer)
    with flow.harness(flow.job(topics, settings=SLOW_COPY)) as harness:
        harness.wait_for_snapshot("copying to begin", has_copied_records)
        yield
        wait_for_reason(harness, "target: ")
        yield
        finish_without_events(flow, harness, topics)


def reasons_of_two_flows(flow: CopyFlow, target: Cluster) -> Iterator[None]:
    topics = {"idle": f"{flow.name}.idle", "under load": f"{flow.name}.load"}
    flows = {load: replace(flow, name=name) for load, name in topics.items()}
    jobs = {}
    with closing(BatchWriter(flow.source)) as writer, ExitStack() as stack:
        for load, name in topics.items():
            flows[load].create_topic(name, 2)
            for number in range(2):
                writer.write_batch(TopicPartition(name, number), numbered_records(range(10)))
            jobs[load] = flows[load].job({name: 2}, flush_interval_s=0.5)
        harnesses = {
            load: stack.enter_context(flows[load].harness(job)) for load, job in jobs.items()
        }
        for harness in harnesses.values():
            wait_for_views(harness, "everything copied", is_caught_up)
        yield
        for number in range(2):
            writer.write_batch(
                TopicPartition(topics["under load"], number), numbered_records(range(10, 20))
            )
        cause = f"target: target: PLAINTEXT {target.bootstrap_servers()}: connection refused"
        for harness in harnesses.values():
            wait_for_views(harness, "the cause is shown", lambda view: cause in view.reason)
        wait_for_views(harnesses["under load"], "the lag is shown", lambda view: view.end == 20)
        yield
        for harness in harnesses.values():
            wait_for_views(harness, "all is well", is_caught_up)
            harness.drain()
            assert harness.snapshot.events == ()


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
