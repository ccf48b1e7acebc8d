"""What a reader at read_committed sees of a copy, and what must be true of it.

kafka-python's consumer is the reader: its filter of aborted transactions is not ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.topic_contents import read_topic
from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.offsets import LATEST, list_offsets
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S, CopyHarness
from tests.support.kafka.partition_log import (
    PartitionLog,
    assert_copied,
    assert_run_map_consistent,
    log_start_and_end,
)
from tests.support.kafka.record_batches import without_offsets
from tests.support.kafka.wire_copier import make_router
from tests.support.waiting import wait_until


def read_committed_records(access: ClusterAccess, topic: str) -> dict[int, list[Record]]:
    """The records of a topic that count, by partition."""
    by_partition: dict[int, list[Record]] = {}
    for one in read_topic(access, topic, committed_only=True):
        assert one.timestamp_ms is not None
        headers = tuple((name.encode(), content) for name, content in one.headers)
        by_partition.setdefault(one.partition, []).append(
            Record(one.offset, one.timestamp_ms, one.key, one.value, headers)
        )
    return by_partition


def wait_until_transactions_end(flow: CopyFlow, topics: Mapping[str, int]) -> None:
    """Wait until no transaction is open on the target: a commit is answered before its markers."""
    every = [
        TopicPartition(remote_topic_name(topic), number)
        for topic, count in topics.items()
        for number in range(count)
    ]
    router = make_router(flow.target)

    def is_so() -> bool:
        return all(
            last_stable_offset(router, one) == log_start_and_end(router, one)[1] for one in every
        )

    try:
        wait_until(is_so, "every transaction to end", HARNESS_TIMEOUT_S)
    finally:
        router.close()


def assert_exactly_once(
    flow: CopyFlow, topics: Mapping[str, int], stage: CopyHarness | None = None
) -> None:
    """Everything at the source counts on the target once, in order; markers do not show."""
    wait_until_transactions_end(flow, topics)
    for topic, count in topics.items():
        there = read_committed_records(flow.target, remote_topic_name(topic))
        for number in range(count):
            partition = TopicPartition(topic, number)
            source, _ = flow.partition_logs(partition)
            copy = PartitionLog(start=0, end=0, records=there.get(number, []))
            assert_same_records(source.expected_records, copy.records)
            if stage:
                assert_run_map_consistent(
                    source.expected_records, copy, stage.conductor.runs(partition)
                )


def assert_same_records(wanted: list[Record], there: list[Record]) -> None:
    """Two lists of records are the same but for their offsets."""
    numbered = [record._replace(offset=n) for n, record in enumerate(there)]
    assert_copied(wanted, PartitionLog(start=0, end=len(there), records=numbered))
    assert without_offsets(wanted) == without_offsets(there)


def assert_ledger_positions(flow: CopyFlow, job: CopyJob, ends: Mapping[str, int]) -> None:
    """What the offsets topic says of each partition is where the source ends."""
    ledger = OffsetsTopicLedger.for_job(job)

    def stands_there() -> bool:
        positions = {str(one): entry.position for one, entry in ledger.load().items()}
        return positions == dict(ends)

    try:
        wait_until(stands_there, f"the ledger to say {ends}")
        entries = ledger.load()
    finally:
        ledger.close()
    assert all(entry.extension and entry.extension.is_transactional for entry in entries.values())
    assert flow.offsets_topic == job.offsets_topic


def last_stable_offset(router: Router, partition: TopicPartition) -> int:
    """How far a reader at read_committed can read now: the last stable offset."""
    end = list_offsets(router, {partition: LATEST}, read_committed=True)[partition].value
    assert end
    return end.offset
