"""Transformations of records: held and tolerated failures, changed chains, what others read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.fault_scenario import SLOW_COPY, create_mixed_topic
from tests.support.copy.harness_process import HarnessProcess
from tests.support.copy.transform_chains import DROP_AND_MASK, MASK_PRICE, transformed_records
from tests.support.kafka.batch_writer import BatchWriter, now_ms, priced_records


@pytest.fixture
def transforms() -> Mapping[str, str]:
    return DROP_AND_MASK


def test_java_reads_what_transformations_leave(
    flow: CopyFlow, topic: str, writer: BatchWriter, target: Cluster
) -> None:
    """A partition in whose last batch everything is dropped is caught up, too."""
    flow.create_topic(topic, 2)
    kept, dropped = TopicPartition(topic, 0), TopicPartition(topic, 1)
    writer.write_batches(kept, priced_records(range(300)), batch=40)
    writer.write_batches(dropped, priced_records(range(0, 300, 3)), batch=40)
    with flow.harness(flow.job({topic: 2})) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 2}))
        harness.drain()
        views = harness.snapshot.partitions
        assert [views[str(one)].filtered for one in (kept, dropped)] == [100, 100]
        assert [views[str(one)].records for one in (kept, dropped)] == [200, 0]
        assert harness.snapshot.lanes[topic].keys() == {"transformed", "filtered"}
    flow.assert_mirrored({topic: 2}, harness=harness)
    printed = KafkaToolRunner().run(
        "kafka-console-consumer",
        [
            *("--bootstrap-server", target.client_properties()["bootstrap.servers"]),
            *("--topic", remote_topic_name(topic), "--from-beginning", "--max-messages", "200"),
            *("--formatter-property", "print.headers=true"),
        ],
    )
    lines = printed.split("\n")[:-1]
    assert [line.partition('"number":')[2].partition(",")[0] for line in lines] == [
        str(number) for number in range(300) if number % 3
    ]
    assert all('"price":0.0' in line and "pii" not in line for line in lines)


def test_a_record_that_fails_holds_its_partition_until_errors_are_tolerated(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    flow.create_topic(topic, 2)
    stuck, free = TopicPartition(topic, 0), TopicPartition(topic, 1)
    good = priced_records(range(10))
    for partition in (stuck, free):
        writer.write_batch(partition, good)
    writer.write_batch(stuck, [*good[:5], Record(0, now_ms(), b"k", b"no JSON"), *good])
    ends = flow.source_end_offsets({topic: 2})

    def is_held(seen: CopySnapshot) -> bool:
        view = seen.partitions[str(stuck)]
        return view.state == "held" and "the record at offset 15 failed in TO" in view.reason

    job = flow.job({topic: 2})
    with flow.harness(job) as harness:
        harness.wait_for_snapshot("the partition to be held", is_held)
        assert harness.snapshot.partitions[str(stuck)].position == 15
        harness.wait_until_caught_up({str(free): ends[str(free)]})
        harness.drain()
    tolerant = replace(
        job.settings, transforms={**job.settings.transforms, "errors.tolerance": "all"}
    )
    assert tolerant.chain == job.settings.chain
    with flow.harness(replace(job, settings=tolerant)) as harness:
        harness.wait_until_caught_up(ends)
        harness.drain()
        assert harness.snapshot.partitions[str(stuck)].skipped == 1
    source, target = flow.partition_logs(stuck)
    readable = [record for record in source.records if record.value != b"no JSON"]
    wanted = transformed_records(DROP_AND_MASK, readable)
    assert [one.value for one in target.records] == [one.value for one in wanted]


def test_a_chain_that_changes_after_a_kill_repeats_records_and_loses_none(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_mixed_topic(flow, topic, writer)
    with HarnessProcess(flow.job(topics, settings=SLOW_COPY)) as killed:
        killed.wait_until_copied(100)
        killed.kill()
    other = replace(flow, transforms=MASK_PRICE)
    with other.harness(other.job(topics)) as harness:
        harness.wait_for_event("repeat")
        harness.wait_until_caught_up(flow.source_end_offsets(topics))
        harness.drain()
        texts = [one.text for one in harness.snapshot.events if one.kind == "repeat"]
        assert all("the transforms of the connector were changed" in text for text in texts)
    for number in range(topics[topic]):
        source, target = flow.partition_logs(TopicPartition(topic, number))
        wanted = [one.key for one in source.expected_records]
        assert [one.key for one in target.records][-len(wanted) :] == wanted
