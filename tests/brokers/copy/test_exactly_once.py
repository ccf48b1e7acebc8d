"""Exactly-once: whatever process dies, a read_committed reader sees every record once, in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.driver.fencing.fence import DriverFenced
from sparkmirror.copy.driver.fencing.transactional_id_fencing import TransactionalIdFencing
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.copy.transaction_committer import TransactionCommitter
from sparkmirror.errors import RequestRefused
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.transactions import describe_transaction
from tests.brokers.copy.conftest import lanes
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.copy_harness import HARNESS_TIMEOUT_S, CopyHarness
from tests.support.copy.exactly_once import (
    assert_exactly_once,
    assert_ledger_positions,
    last_stable_offset,
    read_committed_records,
    wait_until_transactions_end,
)
from tests.support.copy.fault_scenario import all_partitions_leased
from tests.support.copy.harness_process import HarnessProcess
from tests.support.kafka.batch_writer import (
    MIXED_PARTITIONS,
    SMALL_MESSAGE_LIMIT,
    BatchWriter,
    numbered_records,
    write_mixed_batches,
)
from tests.support.kafka.partition_log import log_start_and_end
from tests.support.kafka.wire_copier import make_router
from tests.support.waiting import wait_until

SLOW_TRANSACTIONS: dict[str, Any] = {"bytes_per_s": 40_000}
"""So slow that a fault hits a running copy, even on a machine that pauses for seconds."""
COMMIT_INTERVAL_S = 0.5
"""Seconds between commits: a fault hits an open transaction."""


def create_small_mixed_topic(flow: CopyFlow, topic: str, writer: BatchWriter) -> dict[str, int]:
    """Create a topic with plain, transactional and large batches; returns its partition count."""
    flow.create_topic(topic, MIXED_PARTITIONS, remote=SMALL_MESSAGE_LIMIT)
    write_mixed_batches(writer, topic, records=600, make_records=flow.make_records)
    return {topic: MIXED_PARTITIONS}


def exactly_once_job(flow: CopyFlow, topics: dict[str, int], **more: Any) -> CopyJob:
    """The job that copies these topics in transactions."""
    return flow.job(topics, delivery=DeliveryMode.EXACTLY_ONCE, **more)


def slow_job(flow: CopyFlow, topics: dict[str, int], **more: Any) -> CopyJob:
    """The same, slow, with a transaction open most of the time."""
    return exactly_once_job(
        flow, topics, settings=SLOW_TRANSACTIONS, commit_interval_s=COMMIT_INTERVAL_S, **more
    )


def has_committed_records(seen: CopySnapshot) -> bool:
    """Whether a record is committed."""
    return seen.records > 0


def drain_and_verify(flow: CopyFlow, harness: CopyHarness, topics: dict[str, int]) -> None:
    """Copy the rest at full speed, and compare."""
    harness.conductor.set_rate(0)
    ends = flow.source_end_offsets(topics)
    harness.wait_until_caught_up(ends)
    harness.drain()
    assert_exactly_once(flow, topics, harness)
    assert_ledger_positions(flow, harness.job, ends)


@pytest.fixture
def target_router(flow: CopyFlow) -> Iterator[Router]:
    """A router to the target."""
    router = make_router(flow.target)
    yield router
    router.close()


def test_every_record_counts_once_and_java_sees_the_same(
    flow: CopyFlow, topic: str, writer: BatchWriter, target: Cluster
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    foreign_writer = BatchWriter(flow.target)
    aborted = foreign_writer.begin_transaction(f"foreign-{topic}")
    aborted.write_batch(TopicPartition(remote_topic_name(topic), 0), numbered_records(range(3)))
    aborted.abort()
    foreign_writer.close()
    writer.write_batches(partition, numbered_records(range(200)))
    transaction = writer.begin_transaction(f"source-{topic}")
    transaction.write_batch(partition, numbered_records(range(200, 250)))
    transaction.commit()
    with flow.harness(exactly_once_job(flow, {topic: 1}, commit_interval_s=0.0)) as harness:
        harness.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        for number in range(20):
            writer.write_batch(partition, numbered_records([300 + number]))
        drain_and_verify(flow, harness, {topic: 1})
        assert harness.snapshot.events == ()
    seen = [
        (one.value or b"").decode()
        for one in read_committed_records(flow.target, remote_topic_name(topic))[0]
    ]
    printed = KafkaToolRunner().run(
        "kafka-console-consumer",
        [
            *("--bootstrap-server", target.client_properties()["bootstrap.servers"]),
            *(
                "--topic",
                remote_topic_name(topic),
                "--from-beginning",
                "--max-messages",
                str(len(seen)),
            ),
            *("--isolation-level", "read_committed"),
        ],
    )
    assert printed.split("\n")[:-1] == seen


@lanes
def test_a_task_may_be_killed_in_its_transaction(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_small_mixed_topic(flow, topic, writer)
    with flow.harness(slow_job(flow, topics, tasks=2)) as harness:
        harness.wait_until_all_tasks_copy()
        harness.wait_for_more_records()
        harness.kill(0)
        harness.wait_for_event("takeover", times=len(harness.job.tasks[0]))
        harness.wait_for_snapshot("every partition to be copied", all_partitions_leased)
        harness.wait_for_more_records()
        harness.kill(0)
        harness.kill(1)
        harness.wait_for_event("takeover", times=len(harness.job.tasks[0]) + MIXED_PARTITIONS)
        drain_and_verify(flow, harness, topics)


@lanes
def test_a_driver_may_be_killed_and_have_fewer_tasks_afterwards(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_small_mixed_topic(flow, topic, writer)
    with HarnessProcess(slow_job(flow, topics, tasks=3)) as killed:
        killed.wait_until_copied(200)
        killed.kill()
    with flow.harness(slow_job(flow, topics, tasks=1)) as harness:
        drain_and_verify(flow, harness, topics)
        assert harness.snapshot.events == (), "the committed offsets are enough"


def test_suspended_tasks_that_were_replaced_commit_nothing(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    """Two tasks are suspended in transactions; a task of another driver takes their partitions."""
    topics = create_small_mixed_topic(flow, topic, writer)
    with flow.harness(slow_job(flow, topics, tasks=2)) as first:
        first.wait_until_all_tasks_copy()
        first.restart_tasks = False
        zombies = dict(first.tasks)
        for task in zombies:
            first.suspend(task)
        with flow.harness(slow_job(flow, topics, tasks=1)) as second:
            second.wait_for_more_records()
            for zombie in zombies.values():
                zombie.send_signal(signal.SIGCONT)
            wait_until(
                lambda: first.conductor.failure() is not None,
                "the first to stop",
                HARNESS_TIMEOUT_S,
            )
            assert isinstance(first.conductor.failure(), DriverFenced)
            drain_and_verify(flow, second, topics)
            assert second.snapshot.events == (), "no event"


def test_a_replaced_conductor_can_neither_commit_nor_fence(
    flow: CopyFlow, topic: str, target_router: Router
) -> None:
    flow.create_topic(topic)
    job = exactly_once_job(flow, {topic: 1})
    entry = {TopicPartition(topic, 0): LedgerEntry(position=7)}
    before, after = (
        TransactionalIdFencing(target_router, job),
        TransactionalIdFencing(target_router, job),
    )
    before.fence_all(job)
    before.write_entries(0, entry)
    producer = before.acquire(0)
    assert producer
    assert producer.transactional_id == f"tests-{flow.name}-0"
    zombie = TransactionCommitter(target_router, producer, "source")
    zombie.commit(entry)
    after.fence_all(job)
    with pytest.raises(RequestRefused, match="INVALID_PRODUCER_EPOCH|PRODUCER_FENCED"):
        zombie.commit(entry)
    with pytest.raises(DriverFenced):
        before.write_entries(0, entry)
    with pytest.raises(DriverFenced):
        before.fence(0)
    successor = after.acquire(0)
    assert successor
    TransactionCommitter(target_router, successor, "source").commit(entry)


@pytest.mark.soak
def test_the_target_may_die_and_return(
    flow: CopyFlow, topic: str, writer: BatchWriter, target: Cluster
) -> None:
    topics = create_small_mixed_topic(flow, topic, writer)
    with flow.harness(slow_job(flow, topics)) as harness:
        harness.wait_for_snapshot("copying to begin", has_committed_records)
        target.kill_broker(1)
        target.start_broker(1)
        drain_and_verify(flow, harness, topics)


def test_a_transaction_that_takes_too_long_is_aborted_and_copied_again(
    flow: CopyFlow, topic: str, writer: BatchWriter, target_router: Router
) -> None:
    topics = create_small_mixed_topic(flow, topic, writer)
    remotes = [
        TopicPartition(remote_topic_name(topic), number) for number in range(MIXED_PARTITIONS)
    ]
    job = exactly_once_job(
        flow,
        topics,
        settings={"bytes_per_s": 100_000},
        commit_interval_s=1.0,
        transaction_timeout_s=5.0,
    )

    def all_transactions_ended() -> bool:
        return all(
            log_start_and_end(target_router, p)[1] == last_stable_offset(target_router, p)
            for p in remotes
        )

    with flow.harness(job) as harness:
        harness.wait_for_snapshot("copying to begin", has_committed_records)

        def is_suspended_until_aborted() -> bool:
            """Resume a task that has no open transaction or whose commit was sent."""
            harness.suspend(0)
            if not all_transactions_ended():
                seen = read_committed_records(flow.target, remote_topic_name(topic))
                wait_until(all_transactions_ended, "the broker to abort it", HARNESS_TIMEOUT_S)
                state = describe_transaction(target_router, f"tests-{flow.name}-0")
                if state and state.state == "CompleteAbort":
                    assert read_committed_records(flow.target, remote_topic_name(topic)) == seen
                    return True
            harness.resume(0)
            return False

        wait_until(
            is_suspended_until_aborted,
            "the task to be suspended in a transaction",
            HARNESS_TIMEOUT_S,
        )
        harness.resume(0)
        harness.wait_for_event("fenced")
        drain_and_verify(flow, harness, topics)


def test_a_record_that_is_refused_does_not_hold_the_other_partitions(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = {topic: 2}
    flow.create_topic(topic, 2, remote={"max.message.bytes": "2000"})
    for number in range(2):
        writer.write_batch(TopicPartition(topic, number), numbered_records(range(10)))
    writer.write_batch(TopicPartition(topic, 0), numbered_records([10], size=3000))
    writer.write_batch(TopicPartition(topic, 1), numbered_records(range(10, 20)))
    with flow.harness(exactly_once_job(flow, topics)) as harness:
        harness.wait_for_event("refused")
        harness.wait_until_caught_up({f"{topic}-0": 10, f"{topic}-1": 20})
        harness.drain()
    wait_until_transactions_end(flow, topics)
    there = read_committed_records(flow.target, remote_topic_name(topic))
    assert [len(there[number]) for number in range(2)] == [10, 20]


def test_both_delivery_modes_may_follow_each_other(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    """Each continues where the other ended cleanly, and where it was killed."""
    topics = create_small_mixed_topic(flow, topic, writer)
    plain = flow.job(topics, tasks=2, settings=SLOW_TRANSACTIONS)
    with flow.harness(slow_job(flow, topics)) as harness:
        harness.wait_for_more_records()
        harness.drain()
    for records, job in ((100, plain), (300, slow_job(flow, topics, tasks=2))):
        with HarnessProcess(job) as killed:
            killed.wait_until_copied(records)
            killed.kill()
    with flow.harness(plain) as harness:
        harness.wait_for_more_records()
        harness.drain()
    with flow.harness(slow_job(flow, topics)) as harness:
        drain_and_verify(flow, harness, topics)
