"""Exactly-once: whatever dies, a reader at read_committed sees every record once, in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from sparkmirror.copy.committer import Committer
from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.driver.fence import DriverFenced
from sparkmirror.copy.driver.transactional_ids import TransactionalIds
from sparkmirror.copy.job import CopyJob
from sparkmirror.copy.ledger import LedgerEntry
from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.errors import RequestRefused
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.transactions import describe_transaction
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
"""So slow that faults find everything under way, even if the computer stands still for seconds."""
COMMIT_INTERVAL_S = 0.5
"""Seconds between commits, so that faults find a transaction open."""


def create_small_mixed_topic(flow: CopyFlow, topic: str, writer: BatchWriter) -> dict[str, int]:
    """A topic with plain, transactional and fat partitions, and its number of partitions."""
    flow.create_topic(topic, MIXED_PARTITIONS, remote=SMALL_MESSAGE_LIMIT)
    write_mixed_batches(writer, topic, records=600)
    return {topic: MIXED_PARTITIONS}


def exactly_once_job(flow: CopyFlow, topics: dict[str, int], **more: Any) -> CopyJob:
    """The job that copies these topics in transactions."""
    return flow.job(topics, delivery=DeliveryMode.EXACTLY_ONCE, **more)


def slow_job(flow: CopyFlow, topics: dict[str, int], **more: Any) -> CopyJob:
    """The same, slowly and with a transaction open most of the time."""
    return exactly_once_job(
        flow, topics, settings=SLOW_TRANSACTIONS, commit_interval_s=COMMIT_INTERVAL_S, **more
    )


def has_committed_records(seen: CopySnapshot) -> bool:
    """Whether anything is committed."""
    return seen.records > 0


def drain_and_verify(flow: CopyFlow, stage: CopyHarness, topics: dict[str, int]) -> None:
    """Copy the rest at full speed, and compare."""
    stage.conductor.set_rate(0)
    ends = flow.source_end_offsets(topics)
    stage.wait_until_caught_up(ends)
    stage.drain()
    assert_exactly_once(flow, topics, stage)
    assert_ledger_positions(flow, stage.job, ends)


@pytest.fixture
def target_router(flow: CopyFlow) -> Iterator[Router]:
    """Talks to the target."""
    router = make_router(flow.target)
    yield router
    router.close()


def test_every_record_counts_once_and_java_sees_the_same(
    flow: CopyFlow, topic: str, writer: BatchWriter, target: Cluster
) -> None:
    partition = TopicPartition(topic, 0)
    flow.create_topic(topic)
    strangers = BatchWriter(flow.target)
    aborted = strangers.begin_transaction(f"stranger-{topic}")
    aborted.write_batch(TopicPartition(remote_topic_name(topic), 0), numbered_records(range(3)))
    aborted.abort()
    strangers.close()
    writer.write_batches(partition, numbered_records(range(200)))
    transaction = writer.begin_transaction(f"source-{topic}")
    transaction.write_batch(partition, numbered_records(range(200, 250)))
    transaction.commit()
    with flow.harness(exactly_once_job(flow, {topic: 1}, commit_interval_s=0.0)) as stage:
        stage.wait_until_caught_up(flow.source_end_offsets({topic: 1}))
        for number in range(20):
            writer.write_batch(partition, numbered_records([300 + number]))
        drain_and_verify(flow, stage, {topic: 1})
        assert stage.snapshot.events == ()
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


def test_a_task_may_be_killed_in_its_transaction(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_small_mixed_topic(flow, topic, writer)
    with flow.harness(slow_job(flow, topics, tasks=2)) as stage:
        stage.wait_until_all_tasks_copy()
        stage.wait_for_more_records()
        stage.kill(0)
        stage.wait_for_event("takeover", times=len(stage.job.tasks[0]))
        stage.wait_for_snapshot("every partition to be copied", all_partitions_leased)
        stage.wait_for_more_records()
        stage.kill(0)
        stage.kill(1)
        stage.wait_for_event("takeover", times=len(stage.job.tasks[0]) + MIXED_PARTITIONS)
        drain_and_verify(flow, stage, topics)


def test_a_driver_may_be_killed_and_have_fewer_tasks_afterwards(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = create_small_mixed_topic(flow, topic, writer)
    for records in (100, 300):
        with HarnessProcess(slow_job(flow, topics, tasks=3)) as doomed:
            doomed.wait_until_copied(records)
            doomed.kill()
    with flow.harness(slow_job(flow, topics, tasks=1)) as stage:
        drain_and_verify(flow, stage, topics)
        assert stage.snapshot.events == (), "what was committed says everything"


def test_tasks_that_slept_through_their_replacement_commit_nothing(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    """Two tasks sleep in their transactions; one task of another driver takes all they had."""
    topics = create_small_mixed_topic(flow, topic, writer)
    with flow.harness(slow_job(flow, topics, tasks=2)) as first:
        first.wait_until_all_tasks_copy()
        first.restart_tasks = False
        zombies = dict(first.tasks)
        for task in zombies:
            first.freeze(task)
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
            assert second.snapshot.events == (), "nobody has disturbed it"


def test_whoever_was_replaced_can_neither_commit_nor_hand_out(
    flow: CopyFlow, topic: str, target_router: Router
) -> None:
    flow.create_topic(topic)
    job = exactly_once_job(flow, {topic: 1})
    entry = {TopicPartition(topic, 0): LedgerEntry(position=7)}
    before, after = TransactionalIds(target_router, job), TransactionalIds(target_router, job)
    before.fence_all()
    before.write_entries(entry)
    term = before.acquire(0)
    assert term
    assert term.transactional_id == f"tests-{flow.name}-0"
    zombie = Committer(target_router, term, "source")
    zombie.commit(entry)
    after.fence_all()
    with pytest.raises(RequestRefused, match="INVALID_PRODUCER_EPOCH|PRODUCER_FENCED"):
        zombie.commit(entry)
    with pytest.raises(DriverFenced):
        before.write_entries(entry)
    with pytest.raises(DriverFenced):
        before.fence(0)
    successor = after.acquire(0)
    assert successor
    Committer(target_router, successor, "source").commit(entry)


def test_the_target_may_die_and_come_back(
    flow: CopyFlow, topic: str, writer: BatchWriter, target: Cluster
) -> None:
    topics = create_small_mixed_topic(flow, topic, writer)
    with flow.harness(slow_job(flow, topics)) as stage:
        stage.wait_for_snapshot("copying to begin", has_committed_records)
        target.kill_broker(1)
        target.start_broker(1)
        drain_and_verify(flow, stage, topics)


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

    def all_is_decided() -> bool:
        return all(
            log_start_and_end(target_router, p)[1] == last_stable_offset(target_router, p)
            for p in remotes
        )

    with flow.harness(job) as stage:
        stage.wait_for_snapshot("copying to begin", has_committed_records)

        def sleeps_until_it_is_aborted() -> bool:
            """A task that has nothing open, or whose commit is on its way, is woken again."""
            stage.freeze(0)
            if not all_is_decided():
                seen = read_committed_records(flow.target, remote_topic_name(topic))
                wait_until(all_is_decided, "the broker to abort it", HARNESS_TIMEOUT_S)
                state = describe_transaction(target_router, f"tests-{flow.name}-0")
                if state and state.state == "CompleteAbort":
                    assert read_committed_records(flow.target, remote_topic_name(topic)) == seen
                    return True
            stage.thaw(0)
            return False

        wait_until(sleeps_until_it_is_aborted, "it to sleep in a transaction", HARNESS_TIMEOUT_S)
        stage.thaw(0)
        stage.wait_for_event("fenced")
        drain_and_verify(flow, stage, topics)


def test_a_record_that_is_refused_does_not_hold_the_other_partitions(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    topics = {topic: 2}
    flow.create_topic(topic, 2, remote={"max.message.bytes": "2000"})
    for number in range(2):
        writer.write_batch(TopicPartition(topic, number), numbered_records(range(10)))
    writer.write_batch(TopicPartition(topic, 0), numbered_records([10], size=3000))
    writer.write_batch(TopicPartition(topic, 1), numbered_records(range(10, 20)))
    with flow.harness(exactly_once_job(flow, topics)) as stage:
        stage.wait_for_event("refused")
        stage.wait_until_caught_up({f"{topic}-0": 10, f"{topic}-1": 20})
        stage.drain()
    wait_until_transactions_end(flow, topics)
    there = read_committed_records(flow.target, remote_topic_name(topic))
    assert [len(there[number]) for number in range(2)] == [10, 20]


def test_both_ways_of_delivery_may_follow_each_other(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    """Each goes on where the other was killed, and where it ended well."""
    topics = create_small_mixed_topic(flow, topic, writer)
    plain = flow.job(topics, tasks=2, settings=SLOW_TRANSACTIONS)
    for records, job in ((100, plain), (300, slow_job(flow, topics, tasks=2)), (500, plain)):
        with HarnessProcess(job) as doomed:
            doomed.wait_until_copied(records)
            doomed.kill()
    with flow.harness(slow_job(flow, topics)) as stage:
        stage.wait_for_more_records()
        stage.drain()
    with flow.harness(plain) as stage:
        stage.wait_for_more_records()
        stage.drain()
    with flow.harness(slow_job(flow, topics)) as stage:
        drain_and_verify(flow, stage, topics)
