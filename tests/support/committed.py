"""What a reader at read_committed sees of a copy, and what must be true of it.

kafka-python's consumer is the reader: its filter of aborted transactions is not ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.records import read_topic
from sparkmirror.copy.job import Job
from sparkmirror.engine.ledger import OffsetsTopicLedger
from sparkmirror.model import TopicPartition
from sparkmirror.wire.offsets import LATEST, list_offsets
from sparkmirror.wire.records import Record
from sparkmirror.wire.routing import Router
from tests.support.batches import contents
from tests.support.flows import Flow, remote_name
from tests.support.logs import Log, assert_copied, assert_runs_are_true, edges
from tests.support.raw_copy import router_of
from tests.support.stage import PATIENCE_S, Stage
from tests.support.waiting import wait_until


def committed(access: Access, topic: str) -> dict[int, list[Record]]:
    """The records of a topic that count, by partition."""
    by_partition: dict[int, list[Record]] = {}
    for one in read_topic(access, topic, committed_only=True):
        assert one.timestamp_ms is not None
        headers = tuple((name.encode(), content) for name, content in one.headers)
        by_partition.setdefault(one.partition, []).append(
            Record(one.offset, one.timestamp_ms, one.key, one.value, headers)
        )
    return by_partition


def wait_until_decided(flow: Flow, topics: Mapping[str, int]) -> None:
    """Wait until no transaction is open on the target: a commit is answered before its markers."""
    every = [
        TopicPartition(remote_name(topic), number)
        for topic, count in topics.items()
        for number in range(count)
    ]
    router = router_of(flow.target)

    def is_so() -> bool:
        return all(stable_end(router, one) == edges(router, one)[1] for one in every)

    try:
        wait_until(is_so, "every transaction to end", PATIENCE_S)
    finally:
        router.close()


def assert_exactly_once(flow: Flow, topics: Mapping[str, int], stage: Stage | None = None) -> None:
    """Everything at the source counts on the target once, in order; markers do not show."""
    wait_until_decided(flow, topics)
    for topic, count in topics.items():
        there = committed(flow.target, remote_name(topic))
        for number in range(count):
            partition = TopicPartition(topic, number)
            source, _ = flow.logs(partition)
            copy = Log(start=0, end=0, records=there.get(number, []))
            assert_contents(source.wanted, copy.records)
            if stage:
                assert_runs_are_true(source.wanted, copy, stage.conductor.runs(partition))


def assert_contents(wanted: list[Record], there: list[Record]) -> None:
    """Two lists of records are the same but for their offsets."""
    numbered = [record._replace(offset=n) for n, record in enumerate(there)]
    assert_copied(wanted, Log(start=0, end=len(there), records=numbered))
    assert contents(wanted) == contents(there)


def assert_ledger_stands_at(flow: Flow, job: Job, ends: Mapping[str, int]) -> None:
    """What the offsets topic says of each partition is where the source ends."""
    ledger = OffsetsTopicLedger.of(job)

    def stands_there() -> bool:
        positions = {str(one): entry.position for one, entry in ledger.load().items()}
        return positions == dict(ends)

    try:
        wait_until(stands_there, f"the ledger to say {ends}")
        entries = ledger.load()
    finally:
        ledger.close()
    assert all(entry.ours and entry.ours.is_transactional for entry in entries.values())
    assert flow.offsets_topic == job.offsets_topic


def stable_end(router: Router, partition: TopicPartition) -> int:
    """How far a reader at read_committed can read now: the last stable offset."""
    end = list_offsets(router, {partition: LATEST}, read_committed=True)[partition].value
    assert end
    return end.offset
