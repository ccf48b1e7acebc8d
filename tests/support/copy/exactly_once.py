"""What a consumer at read_committed sees of a copy.

The consumer is kafka-python's: its filter of aborted transactions is not our code.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.produce_and_consume import read_topic
from sparkmirror.copy.job import CopyJob
from sparkmirror.engine.driver.offsets_topic_stores import OffsetsTopicLedger
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets
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
    """Return the committed records of a topic, by partition."""
    by_partition: dict[int, list[Record]] = {}
    for one in read_topic(access, topic, committed_only=True):
        assert one.timestamp_ms is not None
        headers = tuple((name.encode(), content) for name, content in one.headers)
        by_partition.setdefault(one.partition, []).append(
            Record(one.offset, one.timestamp_ms, one.key, one.value, headers)
        )
    return by_partition


def wait_until_transactions_end(flow: CopyFlow, topics: Mapping[str, int]) -> None:
    """Wait until no transaction is open. The coordinator answers before it writes the markers."""
    every = [
        TopicPartition(remote_topic_name(topic), number)
        for topic, count in topics.items()
        for number in range(count)
    ]
    router = make_router(flow.target)

    def no_open_transaction() -> bool:
        return all(
            last_stable_offset(router, one) == log_start_and_end(router, one)[1] for one in every
        )

    try:
        wait_until(no_open_transaction, "every transaction to end", HARNESS_TIMEOUT_S)
    finally:
        router.close()


def assert_exactly_once(
    flow: CopyFlow, topics: Mapping[str, int], harness: CopyHarness | None = None
) -> None:
    """Assert that a consumer at read_committed sees every source record once, in order.

    With transformations: what they make of the records.
    """
    wait_until_transactions_end(flow, topics)
    for topic, count in topics.items():
        committed = read_committed_records(flow.target, remote_topic_name(topic))
        for number in range(count):
            partition = TopicPartition(topic, number)
            source, _ = flow.partition_logs(partition)
            copy = PartitionLog(start=0, end=0, records=committed.get(number, []))
            expected = flow.expected_records(source)
            assert_same_records(expected, copy.records)
            if harness:
                assert_run_map_consistent(expected, copy, harness.conductor.runs(partition))


def assert_same_records(expected: list[Record], actual: list[Record]) -> None:
    """Assert that two lists of records are equal except for offsets."""
    numbered = [record._replace(offset=n) for n, record in enumerate(actual)]
    assert_copied(expected, PartitionLog(start=0, end=len(actual), records=numbered))
    assert without_offsets(expected) == without_offsets(actual)


def assert_ledger_positions(flow: CopyFlow, job: CopyJob, ends: Mapping[str, int]) -> None:
    """Assert that the ledger has each partition at the end of the source."""
    ledger = OffsetsTopicLedger.for_job(job)

    def positions_match() -> bool:
        positions = {str(one): entry.position for one, entry in ledger.load().items()}
        return positions == dict(ends)

    try:
        wait_until(positions_match, f"the ledger to have {ends}")
        entries = ledger.load()
    finally:
        ledger.close()
    assert all(entry.extension and entry.extension.is_transactional for entry in entries.values())
    assert flow.offsets_topic == job.offsets_topic


def last_stable_offset(router: Router, partition: TopicPartition) -> int:
    """Return the last stable offset."""
    end = list_offsets(router, {partition: LATEST}, read_committed=True)[partition].value
    assert end
    return end.offset
